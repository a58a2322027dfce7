/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stage.h"
#include "support/support.h"

#define TURN_MS        20
#define PROGRAM_TICK   20
#define UNTIL_LIMIT_MS 60000

static void on_read(void *arg)
{
	struct stage *stage = arg;
	char byte;

	ck_assert_int_eq((int)read(stage->pipe[0], &byte, 1), 1);
	stage->reads++;
}

static void on_tick(void *arg)
{
	struct stage *stage = arg;

	stage->ticks++;
}

void stage_begin(struct stage *stage, const struct loop_driver *driver)
{
	memset(stage, 0, sizeof(*stage));
	stage->driver = driver;
	stage->fds = support_open_fds();
	stage->loop = driver->create();
	ck_assert_ptr_nonnull(stage->loop);
	ck_assert_int_eq(pipe2(stage->pipe, O_CLOEXEC | O_NONBLOCK), 0);
	stage->watcher = driver->watch(stage->loop, stage->pipe[0], on_read, stage);
	stage->timer = driver->start_timer(stage->loop, PROGRAM_TICK, on_tick, stage);
}

void stage_alone(struct stage *stage)
{
	if (!stage->watcher)
		return;
	stage->driver->unwatch(stage->watcher);
	stage->driver->stop_timer(stage->timer);
	stage->watcher = NULL;
	stage->timer = NULL;
}

static bool others_ran(void *arg)
{
	const struct stage *stage = arg;

	return stage->reads && stage->ticks;
}

void stage_check_others(struct stage *stage)
{
	stage->reads = 0;
	stage->ticks = 0;
	ck_assert_int_eq((int)write(stage->pipe[1], "x", 1), 1);
	ck_assert_msg(stage_until(stage, others_ran, stage), "the program's own watchers stopped");
}

void stage_end(struct stage *stage)
{
	if (stage->watcher)
		stage_check_others(stage);
	stage_alone(stage);
	ck_assert_msg(stage->driver->destroy(stage->loop), "something is left on the loop");
	stage_end_without_loop(stage);
}

void stage_end_without_loop(struct stage *stage)
{
	close(stage->pipe[0]);
	close(stage->pipe[1]);
	/* the thread that closed a device in the background may still be about to end */
	for (int tries = 0; support_open_fds() != stage->fds && tries < 2000; tries++)
		stage_block(1);
	ck_assert_int_eq(support_open_fds(), stage->fds);
}

bool stage_turn(struct stage *stage)
{
	return stage->driver->turn(stage->loop, TURN_MS);
}

void stage_run(struct stage *stage, int ms)
{
	int64_t until = support_now_ms() + ms;
	int64_t left = ms;

	while (left > 0) {
		if (!stage->driver->turn(stage->loop, left < TURN_MS ? (int)left : TURN_MS))
			stage_block(1);
		left = until - support_now_ms();
	}
}

bool stage_until(struct stage *stage, bool (*done)(void *arg), void *arg)
{
	int64_t limit = support_now_ms() + UNTIL_LIMIT_MS;

	while (!done(arg)) {
		if (support_now_ms() > limit)
			return false;
		if (!stage_turn(stage))
			stage_block(1);
	}
	return true;
}

void stage_block(int ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

void stage_wait_readable(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	while (poll(&pollfd, 1, UNTIL_LIMIT_MS) < 0 && errno == EINTR)
		;
	ck_assert_msg(pollfd.revents & POLLIN, "no interrupt arrived");
}

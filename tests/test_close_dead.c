/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; show alone timeout=300 seconds=8 */
/*
 * mlx5vfio_close() on the loop's thread: it returns at once and the loop goes on turning, while a helper
 * waits for firmware that never answers. libmlx5's four time limits of 60 s pass on a clock that runs
 * a hundred times as fast.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "test_open.h"

#define CALL_MS 10
#define TURN_MS 20

/* The machine is shared: a time counts as missed when it is missed this often in a row. */
#define TRIES 8

static const struct state {
	const char *name, *command;
	enum mlx5vfio_fault fault;
	bool spins;
} states[] = {
	{ "healthy", NULL, MLX5VFIO_OK, false },
	{ "PCI offline", "pci-offline 0", MLX5VFIO_PCI_OFFLINE, true },
	{ "NIC disabled", "nic-disabled 0", MLX5VFIO_NIC_DISABLED, true },
	{ "hung", "hang 0", MLX5VFIO_OK, true },
	{ "fatal, answering", "fatal 0", MLX5VFIO_FW_FATAL, false },
};

#define STATES (int)(sizeof(states) / sizeof(states[0]))

struct run {
	const struct state *state;
	struct mlx5vfio *dev;
	uv_timer_t timer;
	enum mlx5vfio_fault fault;
	int order, closed_as, detached_as, error;
	int64_t call_ms, last_turn, longest_turn, closing_since, closed_after;
};

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct run *run = arg;

	(void)dev;
	run->fault = health->fault;
}

static void on_closed(int error, void *arg)
{
	struct run *run = arg;

	ck_assert_int_eq(run->closed_as, 0);
	run->closed_as = ++run->order;
	run->error = error;
	run->closed_after = support_now_ms() - run->closing_since;
}

static void on_detached(void *arg)
{
	struct run *run = arg;

	ck_assert_int_eq(run->detached_as, 0);
	run->detached_as = ++run->order;
	uv_close((uv_handle_t *)&run->timer, NULL);
}

static void begin_close(struct run *run)
{
	support_sim("clock-rate 100");
	run->closing_since = support_now_ms();
	ck_assert_int_eq(mlx5vfio_close(run->dev), 0);
	run->last_turn = support_now_ms();
	run->call_ms = run->last_turn - run->closing_since;
	ck_assert_int_eq(mlx5vfio_close(run->dev), -EALREADY);
}

/* The program's own work, every millisecond: closes when the fault is known, then minds its time. */
static void on_timer(uv_timer_t *timer)
{
	struct run *run = timer->data;
	int64_t now = support_now_ms();

	if (run->closing_since) {
		if (now - run->last_turn > run->longest_turn)
			run->longest_turn = now - run->last_turn;
		run->last_turn = now;
	} else if (run->fault == run->state->fault) {
		begin_close(run);
	}
}

static struct run close_in_a_loop(const struct state *state)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.closed = on_closed,
		.detached = on_detached,
	};
	struct run run = { .state = state };
	uv_loop_t loop;

	ck_assert_int_eq(uv_loop_init(&loop), 0);
	run.dev = mlx5vfio_uv_attach(&loop, test_open(0));
	ck_assert_ptr_nonnull(run.dev);
	mlx5vfio_set_handlers(run.dev, &handlers, &run);
	mlx5vfio_set_interval(run.dev, 50);
	uv_timer_init(&loop, &run.timer);
	run.timer.data = &run;
	uv_timer_start(&run.timer, on_timer, 1, 1);
	if (state->command)
		support_sim("%s", state->command);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	support_sim("clock-rate 1");
	return run;
}

static void check_end(const struct run *run)
{
	ck_assert_int_eq(run->error, 0);
	ck_assert_int_eq(run->closed_as, 1);
	ck_assert_int_eq(run->detached_as, 2);
	/* 240 s on that clock; else nothing that anybody waits for */
	if (run->state->spins)
		ck_assert_int_ge(run->closed_after, 2000);
	ck_assert_int_eq(ibv_close_device(test_open(0)), 0);
}

START_TEST(the_loop_goes_on)
{
	const struct state *state = &states[_i];
	struct run run;
	int fds = 0, try;

	for (try = 0; try < TRIES; try++) {
		run = close_in_a_loop(state);
		check_end(&run);
		if (try)
			ck_assert(test_no_more_fds(fds));
		fds = support_open_fds();
		if (run.call_ms < CALL_MS && run.longest_turn < TURN_MS)
			break;
	}
	printf("%-16s the call %lld ms, longest turn %2lld ms, closed after %4lld ms (%d tries)\n",
	       state->name, (long long)run.call_ms, (long long)run.longest_turn,
	       (long long)run.closed_after, try + 1);
	ck_assert_int_lt(run.call_ms, CALL_MS);
	ck_assert_int_lt(run.longest_turn, TURN_MS);
}
END_TEST

/* The threads of this process. */
struct threads {
	pid_t ids[64];
	int count;
};

static struct threads list_threads(void)
{
	struct threads threads = { .count = 0 };
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) && threads.count < 64)
		if (entry->d_name[0] != '.')
			threads.ids[threads.count++] = (pid_t)atoi(entry->d_name);
	closedir(dir);
	return threads;
}

static bool is_in(const struct threads *threads, pid_t id)
{
	int i = 0;

	while (i < threads->count && threads->ids[i] != id)
		i++;
	return i < threads->count;
}

/* The policy of a thread that was not there before, -1 when there is none, or no more. */
static int new_policy(const struct threads *before)
{
	struct threads now = list_threads();
	int i = 0;

	while (i < now.count && is_in(before, now.ids[i]))
		i++;
	return i < now.count ? sched_getscheduler(now.ids[i]) : -1;
}

struct policies {
	int idle, other; /* times that each was seen */
};

static void see_policy(struct policies *seen, const struct threads *before)
{
	int policy = new_policy(before);

	seen->idle += policy == SCHED_IDLE;
	seen->other += policy == SCHED_OTHER;
}

static void count_closed(int error, void *arg)
{
	int *closed = arg;

	ck_assert_int_eq(error, 0);
	++*closed;
}

/* Closes device 0; how the thread that does it was seen. */
static struct policies close_and_watch(struct mlx5vfio *dev, const struct state *state,
				       const int *closed)
{
	struct threads before = list_threads();
	struct policies seen = { 0 };
	int64_t late = support_now_ms() + 20000;
	bool hurry = !state->spins;

	ck_assert_int_eq(mlx5vfio_close(dev), 0);
	while (!*closed && support_now_ms() < late) {
		see_policy(&seen, &before);
		if (!hurry && (state->fault ? seen.idle : seen.other)) {
			support_sim("clock-rate 1000");
			hurry = true;
		}
		test_turn(dev, 1);
	}
	support_sim("clock-rate 1");
	return seen;
}

/*
 * A close of a dead device polls for minutes: on a processor that nobody else wants. One of a healthy
 * device is waited for.
 */
START_TEST(only_a_dead_device_is_closed_idly)
{
	static const struct mlx5vfio_handlers handlers = { .closed = count_closed };
	const struct state *state = &states[_i];
	bool dead = state->fault != MLX5VFIO_OK;
	struct policies seen;
	struct mlx5vfio *dev;
	int closed = 0;

	dev = test_attach(0, &handlers, &closed);
	support_sim("delay 0 10ms"); /* so that the thread can be seen where it is not idle */
	if (state->command)
		support_sim("%s", state->command);
	seen = close_and_watch(dev, state, &closed);
	support_sim("heal 0");
	ck_assert_int_eq(closed, 1);
	ck_assert_int_gt(dead ? seen.idle : seen.other, 0);
	if (!dead)
		ck_assert_int_eq(seen.idle, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("close dead");
	TCase *tcase = tcase_create("close");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, only_a_dead_device_is_closed_idly, 0, STATES);
	tcase_add_loop_test(tcase, the_loop_goes_on, 0, STATES);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

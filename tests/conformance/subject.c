/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "libmlx5.h"
#include "subject.h"

#define MAX_DEVICES 4

/* What is open now. Not the subjects: they live on the stack of their scenario. */
static struct {
	struct ibv_context *ctx;
	struct mlx5vfio *dev;
} open_now[MAX_DEVICES];

/* After a detach only .detached may come, and after that nothing. */
static struct subject *heard(void *arg)
{
	struct subject *subject = arg;

	ck_assert_msg(subject->dev != NULL, "a handler was called after the detach");
	return subject;
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct subject *subject = heard(arg);

	ck_assert_ptr_eq(dev, subject->dev);
	subject->health = *health;
	subject->healths++;
	if (health->fault != MLX5VFIO_OK)
		subject->faults++;
	if (subject->act)
		subject->act(subject);
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	struct subject *subject = heard(arg);

	ck_assert_ptr_eq(dev, subject->dev);
	ck_assert_int_lt(error, 0);
	subject->error = error;
	subject->errors++;
	if (subject->act)
		subject->act(subject);
}

/* The last that is heard of dev: a program that polls by itself must let go of it here. */
static void on_closed(int error, void *arg)
{
	struct subject *subject = heard(arg);
	struct stage *stage = subject->stage;

	ck_assert_int_eq(error, 0);
	ck_assert_uint_eq(subject->detached, 0);
	subject->closed++;
	if (stage->driver->drop)
		stage->driver->drop(stage->loop, subject->dev);
	subject->dev = NULL;
	subject->ctx = NULL;
}

static void on_detached(void *arg)
{
	struct subject *subject = arg;

	subject->detached++;
}

void subject_listen(struct subject *subject)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
		.closed = on_closed,
		.detached = on_detached,
	};

	mlx5vfio_set_handlers(subject->dev, &handlers, subject);
}

void subject_open(struct subject *subject, struct stage *stage, unsigned index)
{
	memset(subject, 0, sizeof(*subject));
	subject->stage = stage;
	subject->index = index;
	subject->ctx = support_open(index);
	open_now[index].ctx = subject->ctx;
	subject->fd = mlx5dv_vfio_get_events_fd(subject->ctx);
}

void subject_attach(struct subject *subject, int interval_ms)
{
	struct stage *stage = subject->stage;

	subject->dev = stage->driver->attach(stage->loop, subject->ctx);
	ck_assert_ptr_nonnull(subject->dev);
	open_now[subject->index].dev = subject->dev;
	subject_listen(subject);
	ck_assert_int_eq(mlx5vfio_set_interval(subject->dev, interval_ms), 0);
}

void subject_detach(struct subject *subject)
{
	struct stage *stage = subject->stage;
	struct mlx5vfio *dev = subject->dev;

	subject->dev = NULL;
	open_now[subject->index].dev = NULL;
	if (stage->driver->drop)
		stage->driver->drop(stage->loop, dev);
	mlx5vfio_detach(dev);
}

void subject_forget(struct subject *subject)
{
	struct mlx5vfio *dev = subject->dev;

	subject->dev = NULL;
	open_now[subject->index].dev = NULL;
	mlx5vfio_forget(dev);
}

void subject_close_by_library(struct subject *subject)
{
	ck_assert_int_eq(mlx5vfio_close(subject->dev), 0);
	open_now[subject->index].dev = NULL;
	open_now[subject->index].ctx = NULL;
}

/* libmlx5 loses the memory of a command that is in flight when the device is closed. */
static void let_finish(const struct subject *subject)
{
	int tries;

	libmlx5_heal();
	support_sim("heal %u", subject->index);
	for (tries = 0; mlx5vfio_sim_settle(subject->index, 0) && tries < 1000; tries++) {
		mlx5dv_vfio_process_events(subject->ctx);
		stage_block(1);
	}
}

void subject_close(struct subject *subject)
{
	struct mlx5vfio_sim_stats stats;

	let_finish(subject);
	ck_assert_int_eq(ibv_close_device(subject->ctx), 0);
	subject->ctx = NULL;
	open_now[subject->index].ctx = NULL;
	stats = support_stats(subject->index);
	ck_assert_uint_eq(stats.violations, 0);
	ck_assert_uint_eq(stats.dma_maps, 0);
}

/* A loop that was left behind never turns again. */
void subject_clean_up(void)
{
	libmlx5_heal();
	for (unsigned i = 0; i < MAX_DEVICES; i++) {
		if (open_now[i].dev) {
			mlx5vfio_set_handlers(open_now[i].dev, NULL, NULL);
			mlx5vfio_forget(open_now[i].dev);
		}
		if (open_now[i].ctx) {
			support_sim("heal %u", i);
			ibv_close_device(open_now[i].ctx);
		}
		open_now[i].dev = NULL;
		open_now[i].ctx = NULL;
	}
}

static bool is_detached(void *arg)
{
	const struct subject *subject = arg;

	return subject->detached > 0;
}

void subject_expect_detached(struct subject *subject)
{
	struct stage *stage = subject->stage;

	ck_assert_msg(stage_until(stage, is_detached, subject), ".detached did not come");
	stage->driver->turn(stage->loop, 0);
	ck_assert_uint_eq(subject->detached, 1);
}

void subject_begin(struct subject *subject, struct stage *stage, unsigned index, int interval_ms)
{
	subject_open(subject, stage, index);
	subject_attach(subject, interval_ms);
}

void subject_end(struct subject *subject)
{
	subject_detach(subject);
	subject_close(subject);
	subject_expect_detached(subject);
}

struct mlx5vfio_stats subject_stats(const struct subject *subject)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(subject->dev, &stats, sizeof(stats));
	return stats;
}

bool subject_has_error(void *arg)
{
	const struct subject *subject = arg;

	return subject->errors > 0;
}

bool subject_has_fault(void *arg)
{
	const struct subject *subject = arg;

	return subject->faults > 0;
}

struct goal {
	const struct subject *subject;
	uint64_t wanted;
};

static bool given(void *arg)
{
	const struct goal *goal = arg;

	return support_stats(goal->subject->index).pages_given >= goal->wanted;
}

static bool ticked(void *arg)
{
	const struct goal *goal = arg;

	return subject_stats(goal->subject).ticks >= goal->wanted;
}

void subject_until_given(struct subject *subject, uint64_t pages)
{
	struct goal goal = { subject, pages };

	ck_assert_msg(stage_until(subject->stage, given, &goal), "firmware waits for pages");
}

void subject_until_ticks(struct subject *subject, uint64_t ticks)
{
	struct goal goal = { subject, ticks };

	ck_assert_msg(stage_until(subject->stage, ticked, &goal), "the tick does not come");
}

void subject_post_event(struct subject *subject, unsigned pages)
{
	support_sim("page-request %u %u", subject->index, pages);
	stage_wait_readable(subject->fd);
}

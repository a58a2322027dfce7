/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of event queues share: a device in a loop of either kind, libuv's or nothing but
 * poll(), and event queues on it.
 */
#ifndef TESTS_TEST_EQ_H
#define TESTS_TEST_EQ_H

#include <errno.h>
#include <string.h>
#include <uv.h>

#include <mlx5vfio/eq.h>
#include <mlx5vfio/uv.h>

#include "support/support.h"

#define BIT(type) (UINT64_C(1) << (type))

enum {
	TEST_PATIENCE = 20000, /* ms in which anything that shall happen has happened */
	TEST_SILENCE = 50,     /* ms, longer than the simulator takes to repair a lost arm */
	TEST_MAX_FDS = 80,
};

enum test_loop_kind { LOOP_UV, LOOP_POLL, LOOP_KINDS };

struct test_loop {
	enum test_loop_kind kind;
	uv_loop_t uv;
	uv_timer_t alarm; /* so that a turn ends */
	struct ibv_context *ctx;
	struct mlx5vfio *dev; /* NULL once it is detached */
	int faults, errors, closed, detached;
	int error; /* the last one told */
};

/* What is still open, for after a test that failed. */
static struct mlx5vfio *test_attached;
static struct ibv_context *test_opened;

static void test_on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct test_loop *loop = arg;

	(void)dev;
	loop->faults += health->fault != MLX5VFIO_OK;
}

static void test_on_error(struct mlx5vfio *dev, int error, void *arg)
{
	struct test_loop *loop = arg;

	(void)dev;
	loop->errors++;
	loop->error = error;
}

static void test_on_closed(int error, void *arg)
{
	struct test_loop *loop = arg;

	ck_assert_int_eq(error, 0);
	loop->closed++;
	test_opened = NULL;
}

static void test_on_detached(void *arg)
{
	struct test_loop *loop = arg;

	loop->detached++;
	loop->dev = test_attached = NULL;
}

static void test_on_alarm(uv_timer_t *timer)
{
	(void)timer;
}

/* Opens simulated device number dev and puts it into a loop of this kind. */
static inline void test_loop_start(struct test_loop *loop, enum test_loop_kind kind, unsigned dev)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = test_on_health,
		.error = test_on_error,
		.closed = test_on_closed,
		.detached = test_on_detached,
	};

	*loop = (struct test_loop){ .kind = kind, .ctx = support_open(dev) };
	ck_assert_int_eq(uv_loop_init(&loop->uv), 0);
	uv_timer_init(&loop->uv, &loop->alarm);
	loop->dev = kind == LOOP_UV ? mlx5vfio_uv_attach(&loop->uv, loop->ctx)
				    : mlx5vfio_attach(loop->ctx, NULL, NULL);
	ck_assert_ptr_nonnull(loop->dev);
	mlx5vfio_set_handlers(loop->dev, &handlers, loop);
	test_attached = loop->dev;
	test_opened = loop->ctx;
}

static inline void test_turn_uv(struct test_loop *loop, int most_ms)
{
	uv_timer_start(&loop->alarm, test_on_alarm, (uint64_t)most_ms, 0);
	uv_run(&loop->uv, UV_RUN_ONCE);
	uv_timer_stop(&loop->alarm);
}

static inline void test_turn_poll(struct test_loop *loop, int most_ms)
{
	struct pollfd fds[TEST_MAX_FDS];
	int ms, n, i;

	if (!loop->dev)
		return;
	n = mlx5vfio_pollfds(loop->dev, fds, TEST_MAX_FDS);
	ck_assert_int_le(n, TEST_MAX_FDS);
	ms = mlx5vfio_timeout_ms(loop->dev);
	if (ms < 0 || ms > most_ms)
		ms = most_ms;
	poll(fds, (nfds_t)n, ms);
	for (i = 0; i < n; i++)
		if (fds[i].revents && loop->dev)
			mlx5vfio_process(loop->dev, fds[i].fd, fds[i].revents);
	if (loop->dev && mlx5vfio_timeout_ms(loop->dev) == 0)
		mlx5vfio_process(loop->dev, -1, 0);
}

/* One turn, which waits for most_ms at most. */
static inline void test_turn(struct test_loop *loop, int most_ms)
{
	if (loop->kind == LOOP_UV)
		test_turn_uv(loop, most_ms);
	else
		test_turn_poll(loop, most_ms);
}

/* Turns until *count is at least what is wanted; it must not stand still for long. */
static inline void test_turn_until(struct test_loop *loop, const int *count, int wanted)
{
	int64_t end = support_now_ms() + TEST_PATIENCE;
	int before = *count;

	while (*count < wanted) {
		test_turn(loop, 10);
		if (*count != before)
			end = support_now_ms() + TEST_PATIENCE;
		before = *count;
		ck_assert_msg(support_now_ms() < end, "stuck at %d of %d", *count, wanted);
	}
}

/* Turns for a while in which nothing is expected. */
static inline void test_turn_for(struct test_loop *loop, int ms)
{
	int64_t end = support_now_ms() + ms;

	while (support_now_ms() < end)
		test_turn(loop, 5);
}

/* Lets go of the loop itself: everything else must have let go. */
static inline void test_loop_end(struct test_loop *loop)
{
	uv_close((uv_handle_t *)&loop->alarm, NULL);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop->uv), 0);
	ck_assert_int_eq(loop->detached, 1);
}

/* Closes the device behind a loop that is still there. */
static inline void test_close(struct test_loop *loop)
{
	test_opened = NULL;
	ck_assert_int_eq(ibv_close_device(loop->ctx), 0);
}

/* The teardown of a test that may have failed anywhere: the next one finds its device closed. */
static inline void test_clean_up(void)
{
	if (test_attached) {
		mlx5vfio_set_handlers(test_attached, NULL, NULL);
		mlx5vfio_forget(test_attached);
	}
	if (test_opened)
		ibv_close_device(test_opened);
	test_attached = NULL;
	test_opened = NULL;
	support_sim("heal 0");
}

/* Detaches, closes the device and ends the loop: nothing is left, no rule was broken. */
static inline void test_loop_finish(struct test_loop *loop, unsigned dev, uint64_t violations)
{
	mlx5vfio_detach(loop->dev);
	test_close(loop);
	test_loop_end(loop);
	ck_assert_uint_eq(support_stats(dev).violations, violations);
	ck_assert_uint_eq(support_stats(dev).dma_maps, 0);
}

static inline struct mlx5vfio_eq *test_eq_open(struct test_loop *loop, unsigned log_size,
					       unsigned budget, uint64_t events,
					       mlx5vfio_event_fn *on_event, void *arg)
{
	const struct mlx5vfio_eq_attr attr = {
		.log_size = log_size,
		.budget = budget,
		.events = events,
	};
	struct mlx5vfio_eq *eq = mlx5vfio_eq_open(loop->dev, &attr, on_event, arg);

	ck_assert_msg(eq != NULL, "no event queue: errno %d", errno);
	return eq;
}

#endif

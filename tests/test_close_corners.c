/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 2; tsan */
/*
 * mlx5vfio_close() where it cannot, when it is not waited for, and from inside of handlers.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test_open.h"

struct run {
	int removals, closed, detached, error;
	bool detach_when_closed, closed_first;
	struct mlx5vfio *dev;
};

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	struct run *run = arg;

	(void)dev;
	run->removals++;
}

static void on_closed(int error, void *arg)
{
	struct run *run = arg;

	run->closed++;
	run->closed_first = !run->detached;
	run->error = error;
	if (run->detach_when_closed)
		mlx5vfio_detach(run->dev);
}

static void on_detached(void *arg)
{
	struct run *run = arg;

	run->detached++;
}

static const struct mlx5vfio_handlers handlers = {
	.removal = on_removal,
	.closed = on_closed,
	.detached = on_detached,
};

static void finish_close(struct run *run, struct mlx5vfio *dev)
{
	ck_assert_int_eq(mlx5vfio_close(dev), 0);
	while (!run->detached)
		test_turn(dev, 1000);
	ck_assert_int_eq(run->closed, 1);
	ck_assert_int_eq(run->detached, 1);
	ck_assert(run->closed_first);
	ck_assert_int_eq(run->error, 0);
	ck_assert_int_eq(ibv_close_device(test_open(0)), 0);
}

/* Nothing was lost: it is still served, hears of removals, and can be closed later. */
static void check_alive(struct run *run, struct mlx5vfio *dev)
{
	uint64_t given = support_stats(0).pages_given;
	struct mlx5vfio_health health;

	ck_assert_uint_eq(mlx5vfio_features(dev), ALL_FEATURES);
	ck_assert_int_eq(mlx5vfio_get_health(dev, &health), 0);
	ck_assert_int_eq(health.fault, MLX5VFIO_OK);
	support_sim("page-request 0 4");
	while (support_stats(0).pages_given < given + 4)
		test_turn(dev, 10);
	support_sim("remove-request 0");
	while (!run->removals)
		test_turn(dev, 1000);
	ck_assert_int_eq(run->closed + run->detached, 0);
}

/* More than there are addresses. */
static void set_default_stack(size_t size)
{
	pthread_attr_t attr;

	ck_assert_int_eq(pthread_getattr_default_np(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, size), 0);
	ck_assert_int_eq(pthread_setattr_default_np(&attr), 0);
	pthread_attr_destroy(&attr);
}

START_TEST(no_thread)
{
	struct run run = { 0 };
	struct mlx5vfio *dev = test_attach(0, &handlers, &run);
	int fds = support_open_fds();
	int error;

	set_default_stack((size_t)1 << 50);
	error = mlx5vfio_close(dev);
	set_default_stack((size_t)8 << 20);
	ck_assert_int_eq(error, -EAGAIN);
	ck_assert(test_no_more_fds(fds));
	check_alive(&run, dev);
	finish_close(&run, dev);
}
END_TEST

START_TEST(no_fd)
{
	struct run run = { 0 };
	struct mlx5vfio *dev = test_attach(0, &handlers, &run);
	struct rlimit before, none;
	int error;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	error = mlx5vfio_close(dev);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(error, -EMFILE);
	check_alive(&run, dev);
	finish_close(&run, dev);
}
END_TEST

/* A loop that cannot take one more fd. */
static int watch_own_only(void *loop, int fd, int events)
{
	const int *own = loop;

	return events && fd != *own ? -ENOSPC : 0;
}

static int any_timer(void *loop, int ms)
{
	(void)loop;
	(void)ms;
	return 0;
}

static void release_at_once(void *loop);

static const struct mlx5vfio_loop_ops full_loop = {
	.name = "full",
	.watch = watch_own_only,
	.timer = any_timer,
	.release = release_at_once,
};

static struct mlx5vfio *on_full_loop;

static void release_at_once(void *loop)
{
	(void)loop;
	mlx5vfio_released(on_full_loop);
}

START_TEST(no_watch)
{
	struct run run = { 0 };
	struct ibv_context *ctx = test_open(0);
	int own = mlx5dv_vfio_get_events_fd(ctx);
	struct mlx5vfio_health health;

	on_full_loop = mlx5vfio_attach(ctx, &full_loop, &own);
	ck_assert_ptr_nonnull(on_full_loop);
	mlx5vfio_set_handlers(on_full_loop, &handlers, &run);
	ck_assert_int_eq(mlx5vfio_close(on_full_loop), -ENOSPC);
	ck_assert_int_eq(mlx5vfio_get_health(on_full_loop, &health), 0);
	ck_assert_int_eq(health.fault, MLX5VFIO_OK);
	ck_assert_int_eq(run.closed + run.detached, 0);
	mlx5vfio_detach(on_full_loop);
	ck_assert_int_eq(run.detached, 1);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	ck_assert_int_eq(ibv_close_device(test_open(0)), 0);
}
END_TEST

/* The device is closed a little before its group. */
static struct ibv_context *open_soon(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int64_t late = support_now_ms() + 10000;
	struct ibv_context *ctx;

	for (;;) {
		ctx = mlx5vfio_open(support_pci_name(0), 0, NULL, 0);
		if (ctx || errno != EBUSY || support_now_ms() > late)
			return ctx;
		nanosleep(&pause, NULL);
	}
}

/* By a detach, or without one because the loop is gone. */
static void (*const ends[])(struct mlx5vfio *dev) = { mlx5vfio_detach, mlx5vfio_forget };

/* Nobody is told of the end, which comes all the same: the unbind waits for it. */
START_TEST(detached_while_closing)
{
	struct ibv_context *ctx;
	struct run run = { 0 };
	int fds = support_open_fds();
	struct mlx5vfio *dev = test_attach(0, &handlers, &run);

	support_sim("delay 0 20ms");
	ck_assert_int_eq(mlx5vfio_close(dev), 0);
	ends[_i](dev);
	ck_assert_int_eq(run.detached, 1);
	support_sim("unbind 0 60s");
	support_sim("heal 0");
	ctx = open_soon();
	ck_assert_ptr_nonnull(ctx);
	ck_assert_int_eq(run.closed, 0);
	ck_assert_int_eq(run.detached, 1);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	ck_assert(test_no_more_fds(fds));
}
END_TEST

/* The same number may be used again at once, by another device. */
START_TEST(another_while_closing)
{
	struct run run = { 0 }, other = { 0 };
	struct mlx5vfio *dev = test_attach(0, &handlers, &run);
	struct mlx5vfio *second;
	struct ibv_context *ctx;

	support_sim("delay 0 20ms");
	ck_assert_int_eq(mlx5vfio_close(dev), 0);
	second = test_attach(1, &handlers, &other);
	ck_assert_uint_eq(mlx5vfio_features(second), ALL_FEATURES);
	while (!run.detached)
		test_turn(dev, 1000);
	support_sim("heal 0");
	support_sim("remove-request 1");
	while (!other.removals)
		test_turn(second, 1000);
	ctx = mlx5vfio_context(second);
	mlx5vfio_detach(second);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	ck_assert_int_eq(run.closed, 1);
	ck_assert_int_eq(run.removals, 0);
	ck_assert_int_eq(other.closed, 0);
}
END_TEST

START_TEST(detached_when_closed)
{
	struct run run = { .detach_when_closed = true };

	run.dev = test_attach(0, &handlers, &run);
	finish_close(&run, run.dev);
}
END_TEST

/* libmlx5 waits for 240 s, and the end of the process does not. */
START_TEST(exit_does_not_wait)
{
	const char *const argv[] = { "prog_open_exit", NULL };
	int64_t start = support_now_ms();
	char output[32];
	int status = support_finish(support_start(argv), output, sizeof(output));

	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", (unsigned)status);
	ck_assert_str_eq(output, "closing\n");
	ck_assert_int_lt(support_now_ms() - start, 20000);
}
END_TEST

START_TEST(no_device)
{
	ck_assert_int_eq(mlx5vfio_close(NULL), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("close corners");
	TCase *tcase = tcase_create("close");

	tcase_set_timeout(tcase, 0);
	/* first: a thread that has ended leaves its stack to the next */
	tcase_add_test(tcase, no_thread);
	tcase_add_test(tcase, no_fd);
	tcase_add_test(tcase, no_watch);
	tcase_add_loop_test(tcase, detached_while_closing, 0, 2);
	tcase_add_test(tcase, another_while_closing);
	tcase_add_test(tcase, detached_when_closed);
	tcase_add_test(tcase, exit_does_not_wait);
	tcase_add_test(tcase, no_device);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

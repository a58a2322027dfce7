/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; valgrind */
/* Loops that cannot watch the fd, or refuse a watch or a timer while a device comes to its end. */
#include <errno.h>
#include <string.h>

#include "test_open.h"

#define LONG_MS  3600000
#define PATIENCE 20000

/* A loop that does nothing by itself, and nothing at all of what it refuses. */
static struct {
	struct ibv_context *ctx;
	struct mlx5vfio *dev;                        /* NULL once it is detached */
	int refuse_watch, refuse_stop, refuse_timer; /* negative errnos */
	int released, late;                          /* asked for something after that */
} loop;

static struct {
	int faults, errors, detached;
	enum mlx5vfio_fault fault;
	int error;
} run;

static int watch(void *arg, int fd, int events)
{
	(void)arg;
	(void)fd;
	loop.late += loop.released;
	return events ? loop.refuse_watch : loop.refuse_stop;
}

static int timer(void *arg, int ms)
{
	(void)arg;
	loop.late += loop.released;
	return ms < 0 ? 0 : loop.refuse_timer;
}

static void release(void *arg)
{
	(void)arg;
	loop.released++;
	mlx5vfio_released(loop.dev);
}

static const struct mlx5vfio_loop_ops ops = {
	.name = "refusing",
	.watch = watch,
	.timer = timer,
	.release = release,
};

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	(void)dev;
	(void)arg;
	run.faults += health->fault != MLX5VFIO_OK;
	run.fault = health->fault;
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)arg;
	run.errors++;
	run.error = error;
	if (error == -ENOSPC)
		mlx5vfio_detach(dev);
}

static void on_detached(void *arg)
{
	(void)arg;
	run.detached++;
	loop.dev = NULL;
}

static void begin(const struct mlx5vfio_loop_ops *how, int interval_ms)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
		.detached = on_detached,
	};

	memset(&loop, 0, sizeof(loop));
	memset(&run, 0, sizeof(run));
	loop.ctx = test_open(0);
	loop.dev = mlx5vfio_attach(loop.ctx, how, NULL);
	ck_assert_ptr_nonnull(loop.dev);
	mlx5vfio_set_handlers(loop.dev, &handlers, NULL);
	ck_assert_int_eq(mlx5vfio_set_interval(loop.dev, interval_ms), 0);
}

/* Also after a test that failed: the next one finds the device closed. */
static void clean_up(void)
{
	support_sim("heal 0");
	mlx5vfio_detach(loop.dev);
	ibv_close_device(loop.ctx);
}

static const struct interval {
	int set, served; /* at most so many ms apart */
} intervals[] = {
	{ 0, MLX5VFIO_DEFAULT_INTERVAL },
	{ LONG_MS, MLX5VFIO_DEFAULT_INTERVAL },
	{ 20, 20 },
};

/* The ticks alone serve the device then: there must be some, and not too few. */
START_TEST(fd_that_cannot_be_watched)
{
	const struct interval *interval = &intervals[_i];
	int64_t late = support_now_ms() + PATIENCE;
	struct pollfd fd;

	begin(NULL, interval->set);
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, &fd, 1), 1);
	ck_assert_int_eq(mlx5vfio_process(loop.dev, fd.fd, POLLERR), 0);
	ck_assert_int_eq(run.error, -EIO);
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, NULL, 0), 0);
	ck_assert_int_ge(mlx5vfio_timeout_ms(loop.dev), 0);
	ck_assert_int_le(mlx5vfio_timeout_ms(loop.dev), interval->served);
	support_sim("page-request 0 4");
	while ((support_stats(0).pages_given < 4 || mlx5vfio_sim_settle(0, 0)) &&
	       support_now_ms() < late)
		test_turn(loop.dev, LONG_MS);
	ck_assert_uint_eq(support_stats(0).pages_given, 4);
	ck_assert_int_le(mlx5vfio_timeout_ms(loop.dev), interval->served);
	ck_assert_int_eq(run.errors, 1);
}
END_TEST

/* The timer that shall tell a fault is refused: the fault is told when the loop comes, no error. */
START_TEST(no_timer_for_a_fault)
{
	struct mlx5vfio_health health;

	begin(&ops, LONG_MS);
	support_sim("nic-disabled 0");
	loop.refuse_timer = -ENOMEM;
	ck_assert_int_eq(mlx5vfio_get_health(loop.dev, &health), 0);
	ck_assert_int_eq(health.fault, MLX5VFIO_NIC_DISABLED);
	ck_assert_int_eq(run.faults + run.errors, 0);
	ck_assert_int_eq(mlx5vfio_timeout_ms(loop.dev), 0);
	ck_assert_int_eq(mlx5vfio_process(loop.dev, -1, 0), 0);
	ck_assert_int_eq(run.faults, 1);
	ck_assert_int_eq(run.fault, MLX5VFIO_NIC_DISABLED);
	ck_assert_int_eq(run.errors, 0);
}
END_TEST

/*
 * A call fails, so that the fd is to be watched no more, and watched again after the retry. The
 * loop refuses the one or the other, and the handler that is told so detaches: nothing is asked
 * of the loop any more.
 */
START_TEST(detach_when_a_watch_is_refused)
{
	int64_t late = support_now_ms() + PATIENCE;
	int fd;

	begin(&ops, LONG_MS);
	fd = mlx5dv_vfio_get_events_fd(loop.ctx);
	*(_i ? &loop.refuse_watch : &loop.refuse_stop) = -ENOSPC;
	support_sim("fail 0 108 6 1");
	support_sim("page-request 0 4");
	while (!run.errors && support_now_ms() < late)
		mlx5vfio_process(loop.dev, fd, POLLIN);
	while (!run.detached && support_now_ms() < late)
		mlx5vfio_process(loop.dev, -1, 0);
	ck_assert_int_eq(run.error, -ENOSPC);
	ck_assert_int_eq(run.errors, 2);
	ck_assert_int_eq(run.detached, 1);
	ck_assert_int_eq(loop.released, 1);
	ck_assert_int_eq(loop.late, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("loop refuses");
	TCase *tcase = tcase_create("refuses");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, clean_up);
	tcase_add_loop_test(tcase, fd_that_cannot_be_watched, 0,
			    (int)(sizeof(intervals) / sizeof(intervals[0])));
	tcase_add_test(tcase, no_timer_for_a_fault);
	tcase_add_loop_test(tcase, detach_when_a_watch_is_refused, 0, 2);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

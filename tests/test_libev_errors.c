/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; valgrind */
/*
 * libev stops a watcher by itself when the kernel refuses it (ENOSPC: fs.epoll.max_user_watches).
 * For a device that does not keep the loop alive the count of references must be right
 * afterwards.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <ev.h>

#include <mlx5vfio/libev.h>

#include "test_open.h"

#define PATIENCE 20000

static bool refusing;

static struct {
	int errors, error, closed;
} run;

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	int (*next)(int epoll, int op, int fd, struct epoll_event *event);

	*(void **)&next = dlsym(RTLD_NEXT, __func__);
	if (!next)
		abort();
	if (!refusing || op == EPOLL_CTL_DEL)
		return next(epoll, op, fd, event);
	errno = ENOSPC;
	return -1;
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)dev;
	(void)arg;
	run.errors++;
	run.error = error;
}

static void on_closed(int error, void *arg)
{
	(void)arg;
	ck_assert_int_eq(error, 0);
	run.closed++;
}

/* As many references as watchers that keep the loop alive: none, and one of somebody else's. */
static void expect_no_references(struct ev_loop *loop)
{
	ck_assert(!ev_run(loop, EVRUN_NOWAIT));
	ev_ref(loop);
	ck_assert(ev_run(loop, EVRUN_NOWAIT));
	ev_unref(loop);
}

/* The ticks serve the device instead. */
static void expect_served(struct ev_loop *loop)
{
	int64_t late = support_now_ms() + PATIENCE;

	support_sim("page-request 0 4");
	while ((support_stats(0).pages_given < 4 || mlx5vfio_sim_settle(0, 0)) &&
	       support_now_ms() < late)
		ev_run(loop, EVRUN_ONCE);
	ck_assert_uint_eq(support_stats(0).pages_given, 4);
	ck_assert_int_eq(run.errors, 1);
}

static void begin(struct mlx5vfio *dev)
{
	static const struct mlx5vfio_handlers handlers = { .error = on_error, .closed = on_closed };

	ck_assert_ptr_nonnull(dev);
	mlx5vfio_set_handlers(dev, &handlers, NULL);
	ck_assert_int_eq(mlx5vfio_set_interval(dev, 10), 0);
	run.errors = 0;
	run.closed = 0;
}

START_TEST(refused_by_the_kernel)
{
	struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	struct ibv_context *ctx = test_open(0);
	struct mlx5vfio *dev = mlx5vfio_libev_attach(loop, ctx);

	begin(dev);
	if (_i)
		ck_assert_int_eq(mlx5vfio_unref(dev), 0);
	refusing = true;
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(run.errors, 1);
	ck_assert_int_eq(run.error, -EIO);
	if (_i)
		expect_no_references(loop);
	else
		ck_assert(ev_run(loop, EVRUN_NOWAIT));
	expect_served(loop);
	mlx5vfio_detach(dev);
	expect_no_references(loop);
	refusing = false;
	ev_loop_destroy(loop);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

/* The watcher of a close is one that is not taken away at once. */
START_TEST(close_refused_by_the_kernel)
{
	struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	struct mlx5vfio *dev = mlx5vfio_libev_attach(loop, test_open(0));
	int64_t late = support_now_ms() + PATIENCE;
	struct ibv_context *ctx = NULL;

	begin(dev);
	ck_assert_int_eq(mlx5vfio_unref(dev), 0);
	ev_run(loop, EVRUN_NOWAIT);
	refusing = true;
	ck_assert_int_eq(mlx5vfio_close(dev), 0);
	ev_run(loop, EVRUN_NOWAIT);
	expect_no_references(loop);
	mlx5vfio_detach(dev);
	expect_no_references(loop);
	refusing = false;
	ev_loop_destroy(loop);
	while (!ctx && support_now_ms() < late)
		ctx = mlx5vfio_open(support_pci_name(0), 0, NULL, 0);
	ck_assert_ptr_nonnull(ctx);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

/* Its end is told all the same: the timer asks. */
START_TEST(end_of_a_refused_close)
{
	struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	struct mlx5vfio *dev = mlx5vfio_libev_attach(loop, test_open(0));

	begin(dev);
	ev_run(loop, EVRUN_NOWAIT);
	support_sim("delay 0 30ms"); /* so that it takes a while */
	refusing = true;
	ck_assert_int_eq(mlx5vfio_close(dev), 0);
	ev_run(loop, 0);
	ck_assert_int_eq(run.closed, 1);
	refusing = false;
	support_sim("delay 0 0ms");
	ev_loop_destroy(loop);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("libev errors");
	TCase *tcase = tcase_create("errors");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, refused_by_the_kernel, 0, 2);
	tcase_add_test(tcase, close_refused_by_the_kernel);
	tcase_add_test(tcase, end_of_a_refused_close);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

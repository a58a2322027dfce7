/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 2; valgrind */
/*
 * What libmlx5 answers seldom: a ctx of the kernel's driver, the fd number of another ctx, a call
 * that is interrupted while the device dies, a failure that lasts, a close that fails. Functions
 * of libmlx5 and libibverbs are stood in for here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test_open.h"

#define LONG_MS  3600000
#define PATIENCE 20000

/* The last of the quick retries (core/process.c) and the slow ones. */
#define QUICK_MS 100
#define SLOW_MS  MLX5VFIO_DEFAULT_INTERVAL

static struct {
	bool kernels_driver;
	int fd;        /* what get_events_fd() answers, if not 0 */
	int error;     /* with which process_events() fails, if not 0 */
	bool dies;     /* the device dies in it, too */
	int close_ret; /* what ibv_close_device() answers without closing, if not 0 */
	int close_error;
} answer;

static struct {
	int faults, warnings, errors, closed, detached;
	enum mlx5vfio_fault fault;
	int error, closed_with;
	struct mlx5vfio *dev;    /* NULL once it is detached */
	struct ibv_context *ctx; /* NULL once it is closed */
} run;

static void *next_of(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	support_require(next != NULL, "no %s", name);
	return next;
}

bool mlx5dv_is_supported(struct ibv_device *device)
{
	bool (*next)(struct ibv_device * device);

	*(void **)&next = next_of(__func__);
	return answer.kernels_driver || next(device);
}

int mlx5dv_vfio_get_events_fd(struct ibv_context *ctx)
{
	int (*next)(struct ibv_context * ctx);

	*(void **)&next = next_of(__func__);
	return answer.fd ? answer.fd : next(ctx);
}

int mlx5dv_vfio_process_events(struct ibv_context *ctx)
{
	int (*next)(struct ibv_context * ctx);

	*(void **)&next = next_of(__func__);
	if (answer.dies)
		support_sim("pci-offline 0");
	return answer.error ? answer.error : next(ctx);
}

int ibv_close_device(struct ibv_context *ctx)
{
	int (*next)(struct ibv_context * ctx);

	*(void **)&next = next_of(__func__);
	if (!answer.close_ret)
		return next(ctx);
	errno = answer.close_error;
	return answer.close_ret;
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	(void)dev;
	(void)arg;
	run.warnings += health->warning;
	run.faults += health->fault != MLX5VFIO_OK;
	run.fault = health->fault;
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
	run.closed++;
	run.closed_with = error;
}

static void on_detached(void *arg)
{
	(void)arg;
	run.detached++;
	run.dev = NULL;
}

static struct mlx5vfio *begin(int interval_ms)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
		.closed = on_closed,
		.detached = on_detached,
	};
	struct mlx5vfio *dev;

	memset(&answer, 0, sizeof(answer));
	memset(&run, 0, sizeof(run));
	dev = run.dev = test_attach(0, &handlers, NULL);
	run.ctx = mlx5vfio_context(dev);
	ck_assert_int_eq(mlx5vfio_set_interval(dev, interval_ms), 0);
	return dev;
}

/* Also after a test that failed: the next one finds the device closed. */
static void clean_up(void)
{
	memset(&answer, 0, sizeof(answer));
	support_sim("heal 0");
	if (run.dev)
		mlx5vfio_detach(run.dev);
	if (run.ctx)
		ibv_close_device(run.ctx);
	run.ctx = NULL;
}

static struct mlx5vfio_stats counters(const struct mlx5vfio *dev)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(dev, &stats, sizeof(stats));
	return stats;
}

static int events_fd(const struct mlx5vfio *dev)
{
	struct pollfd fd;

	ck_assert_int_eq(mlx5vfio_pollfds(dev, &fd, 1), 1);
	return fd.fd;
}

/* Its ctx is not laid out as VFIO's, so that nothing may be asked of it. */
START_TEST(kernels_driver_refused)
{
	run.ctx = test_open(0);
	answer.kernels_driver = true;
	errno = 0;
	run.dev = mlx5vfio_attach(run.ctx, NULL, NULL);
	ck_assert_ptr_null(run.dev);
	ck_assert_int_eq(errno, EOPNOTSUPP);
}
END_TEST

/* The number is another ctx's now, so that ours is closed: what is readable there is not for us. */
START_TEST(fd_taken_by_another)
{
	struct ibv_context *other = test_open(1);
	struct mlx5vfio *dev = begin(LONG_MS);
	int fd = answer.fd = events_fd(dev);
	uint64_t calls;

	ck_assert_ptr_null(mlx5vfio_attach(other, NULL, NULL));
	ck_assert_int_eq(errno, EBUSY);
	calls = counters(dev).calls;
	ck_assert_int_eq(mlx5vfio_process(dev, fd, POLLIN), 0);
	ck_assert_int_eq(run.errors, 1);
	ck_assert_int_eq(run.error, -EBADF);
	ck_assert_uint_eq(counters(dev).calls, calls);
	ck_assert_int_eq(mlx5vfio_pollfds(dev, NULL, 0), 0);
	ck_assert_int_eq(mlx5vfio_timeout_ms(dev), -1);
	ck_assert_int_eq(ibv_close_device(other), 0);
}
END_TEST

/* A device that has told of a PCI error. No tick comes any more but for what a test calls. */
static struct mlx5vfio *begin_suspected(void)
{
	struct mlx5vfio *dev = begin(LONG_MS);
	int64_t late = support_now_ms() + PATIENCE;

	support_sim("aer 0");
	ck_assert_int_eq(mlx5vfio_set_interval(dev, 10), 0);
	while (!run.warnings && support_now_ms() < late)
		test_turn(dev, 100);
	ck_assert_int_eq(run.warnings, 1);
	return dev;
}

static void expect_pci_error(struct mlx5vfio *dev, uint64_t calls)
{
	ck_assert_int_eq(run.faults, 1);
	ck_assert_int_eq(run.fault, MLX5VFIO_PCI_ERROR);
	ck_assert_int_eq(run.errors, 0);
	ck_assert_uint_eq(counters(dev).calls, calls);
}

/* An event comes before the tick that would have found it dead. */
START_TEST(dies_before_an_event)
{
	struct mlx5vfio *dev = begin_suspected();
	uint64_t calls = counters(dev).calls;

	support_sim("pci-offline 0");
	ck_assert_int_eq(mlx5vfio_process(dev, events_fd(dev), POLLIN), 0);
	expect_pci_error(dev, calls);
}
END_TEST

/* An interrupted call is made again, but not without a look. */
START_TEST(dies_in_an_interrupted_call)
{
	struct mlx5vfio *dev = begin_suspected();
	uint64_t calls = counters(dev).calls;

	answer.error = EINTR;
	answer.dies = true;
	ck_assert_int_eq(mlx5vfio_process(dev, events_fd(dev), POLLIN), 0);
	expect_pci_error(dev, calls + 1);
}
END_TEST

/* A machine that others use may hold the test up meanwhile; never is what it must not be. */
static void expect_slow_retry(const struct mlx5vfio *dev)
{
	ck_assert_int_ge(mlx5vfio_timeout_ms(dev), 0);
	ck_assert_int_le(mlx5vfio_timeout_ms(dev), SLOW_MS);
}

/* Turns until the quick retries are used up; after the slow one that follows there are new ones. */
static void use_up_quick_retries(struct mlx5vfio *dev)
{
	int64_t late = support_now_ms() + PATIENCE;

	while (!run.errors || mlx5vfio_timeout_ms(dev) <= QUICK_MS) {
		test_turn(dev, QUICK_MS);
		ck_assert(!run.errors || mlx5vfio_timeout_ms(dev) >= 0);
		ck_assert_int_lt(support_now_ms(), late);
	}
	expect_slow_retry(dev);
}

/* Where no tick comes soon enough a failure that lasts has retries of its own. */
START_TEST(retries_without_tick)
{
	struct mlx5vfio *dev = begin(_i ? LONG_MS : 0);
	uint64_t given = support_stats(0).pages_given, retries;

	answer.error = EIO;
	support_sim("page-request 0 4");
	use_up_quick_retries(dev);
	retries = counters(dev).retries;
	test_turn(dev, LONG_MS);
	ck_assert_uint_eq(counters(dev).retries, retries + 1);
	use_up_quick_retries(dev);
	ck_assert_int_eq(run.errors, 1);
	answer.error = 0;
	while (support_stats(0).pages_given < given + 4 || mlx5vfio_sim_settle(0, 0))
		test_turn(dev, LONG_MS);
}
END_TEST

/* The tick that was to try again is switched off. */
START_TEST(tick_switched_off_while_failing)
{
	struct mlx5vfio *dev = begin(SLOW_MS);

	answer.error = EIO;
	support_sim("page-request 0 4");
	use_up_quick_retries(dev);
	ck_assert_int_eq(mlx5vfio_set_interval(dev, 0), 0);
	expect_slow_retry(dev);
	ck_assert_int_eq(run.errors, 1);
}
END_TEST

static const struct close_answer {
	int ret, error, told;
} close_answers[] = {
	{ -1, EBUSY, -EBUSY },
	{ -1, 0, -EIO },
	{ 7, 0, -EIO },
};

START_TEST(close_fails)
{
	const struct close_answer *row = &close_answers[_i];
	struct mlx5vfio *dev = begin(LONG_MS);

	answer.close_error = row->error;
	answer.close_ret = row->ret;
	ck_assert_int_eq(mlx5vfio_close(dev), 0);
	while (!run.detached)
		test_turn(dev, 1000);
	ck_assert_int_eq(run.closed, 1);
	ck_assert_int_eq(run.closed_with, row->told);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("libmlx5's rare answers");
	TCase *tcase = tcase_create("answers");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, clean_up);
	tcase_add_test(tcase, kernels_driver_refused);
	tcase_add_test(tcase, fd_taken_by_another);
	tcase_add_test(tcase, dies_before_an_event);
	tcase_add_test(tcase, dies_in_an_interrupted_call);
	tcase_add_loop_test(tcase, retries_without_tick, 0, 2);
	tcase_add_test(tcase, tick_switched_off_while_failing);
	tcase_add_loop_test(tcase, close_fails, 0,
			    (int)(sizeof(close_answers) / sizeof(close_answers[0])));
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

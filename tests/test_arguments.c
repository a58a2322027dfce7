/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; valgrind */
/* What is refused before anything is done, and what is done only once. */
#include <errno.h>
#include <string.h>

#include "test_open.h"

#define LONG_MS 3600000

static struct ibv_context *ctx;
static struct mlx5vfio *dev;

static void set_up(void)
{
	dev = test_attach(0, NULL, NULL);
	ctx = mlx5vfio_context(dev);
	ck_assert_int_eq(mlx5vfio_set_interval(dev, LONG_MS), 0);
}

static void tear_down(void)
{
	mlx5vfio_detach(dev);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}

static uint64_t samples(void)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(dev, &stats, sizeof(stats));
	return stats.samples;
}

START_TEST(no_device)
{
	struct mlx5vfio_health health;

	mlx5vfio_detach(NULL);
	mlx5vfio_forget(NULL);
	ck_assert_int_eq(mlx5vfio_set_interval(NULL, 100), -EINVAL);
	ck_assert_int_eq(mlx5vfio_ref(NULL), -EINVAL);
	ck_assert_int_eq(mlx5vfio_unref(NULL), -EINVAL);
	ck_assert_int_eq(mlx5vfio_set_guard(NULL, true), -EINVAL);
	ck_assert_int_eq(mlx5vfio_get_health(NULL, &health), -EINVAL);
	ck_assert_int_eq(mlx5vfio_get_health(dev, NULL), -EINVAL);
	ck_assert_int_eq(mlx5vfio_close(NULL), -EINVAL);
	ck_assert_int_eq(mlx5vfio_process(NULL, -1, 0), -EINVAL);
	ck_assert(!mlx5vfio_guarded(NULL));
	ck_assert_uint_eq(mlx5vfio_features(NULL), 0);
}
END_TEST

START_TEST(fd_of_nobody)
{
	struct pollfd fd;

	ck_assert_int_eq(mlx5vfio_pollfds(dev, &fd, 1), 1);
	ck_assert_int_eq(mlx5vfio_process(dev, fd.fd + 1, POLLIN), -EINVAL);
	ck_assert_int_eq(mlx5vfio_process(dev, -2, POLLERR), -EINVAL);
	ck_assert_int_eq(mlx5vfio_process(dev, fd.fd, POLLIN), 0);
	ck_assert_int_eq(mlx5vfio_process(dev, -1, 0), 0);
}
END_TEST

static int any_watch(void *loop, int fd, int events)
{
	(void)loop;
	(void)fd;
	(void)events;
	return 0;
}

static int any_timer(void *loop, int ms)
{
	(void)loop;
	(void)ms;
	return 0;
}

static void any_release(void *loop)
{
	(void)loop;
}

static void refuse(struct ibv_context *wrong, const struct mlx5vfio_loop_ops *ops, int error)
{
	errno = 0;
	ck_assert_ptr_null(mlx5vfio_attach(wrong, ops, NULL));
	ck_assert_int_eq(errno, error);
}

START_TEST(attach_refused)
{
	static const struct mlx5vfio_loop_ops wrong[] = {
		{ 0 },
		{ .timer = any_timer, .release = any_release },
		{ .watch = any_watch, .release = any_release },
		{ .watch = any_watch, .timer = any_timer },
	};
	struct ibv_context nothing = { 0 };
	size_t i;

	refuse(NULL, NULL, EINVAL);
	refuse(&nothing, NULL, EINVAL);
	refuse(ctx, NULL, EBUSY);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		refuse(ctx, &wrong[i], EINVAL);
}
END_TEST

/* A guard that is on already is not begun anew: that would be a look, and forget what is known. */
START_TEST(guard_switched_twice)
{
	uint64_t before = samples();

	ck_assert_int_eq(mlx5vfio_set_guard(dev, true), 0);
	ck_assert_uint_eq(samples(), before);
	ck_assert(mlx5vfio_guarded(dev));
	ck_assert_int_eq(mlx5vfio_set_guard(dev, false), 0);
	ck_assert_int_eq(mlx5vfio_set_guard(dev, false), 0);
	ck_assert_uint_eq(samples(), before);
	ck_assert(!mlx5vfio_guarded(dev));
	ck_assert_int_eq(mlx5vfio_set_guard(dev, true), 0);
	ck_assert_uint_eq(samples(), before + 1);
	ck_assert(mlx5vfio_guarded(dev));
}
END_TEST

/* What there is no health of reads as nothing, not as what was there before. */
START_TEST(health_without_guard)
{
	struct mlx5vfio_health health;

	ck_assert_int_eq(mlx5vfio_set_guard(dev, false), 0);
	ck_assert(!(mlx5vfio_features(dev) & MLX5VFIO_FEATURE_GUARD));
	memset(&health, 0xff, sizeof(health));
	ck_assert_int_eq(mlx5vfio_get_health(dev, &health), -ENOTSUP);
	ck_assert_int_eq(health.fault, MLX5VFIO_OK);
	ck_assert(!health.warning && !health.recovery_request);
	ck_assert_uint_eq(health.synd | health.ext_synd | health.irisc_index, 0);
	ck_assert_uint_eq(health.fw_major | health.fw_minor | health.fw_subminor, 0);
	ck_assert_uint_eq(health.counter | health.unmoved_ms | health.hw_id, 0);
	ck_assert_uint_eq(health.assert_var[0] | health.assert_var[4] | health.assert_callra, 0);
	ck_assert_int_eq(mlx5vfio_set_guard(dev, true), 0);
	ck_assert_int_eq(mlx5vfio_get_health(dev, &health), 0);
	ck_assert_uint_eq(health.hw_id, 0x212);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("arguments");
	TCase *tcase = tcase_create("arguments");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, no_device);
	tcase_add_test(tcase, fd_of_nobody);
	tcase_add_test(tcase, attach_refused);
	tcase_add_test(tcase, guard_switched_twice);
	tcase_add_test(tcase, health_without_guard);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 2 */
/*
 * Devices that mlx5vfio_open() has not opened. They have the guard and everything else but removal and
 * PCI errors; and what was found out about a ctx that was closed unseen is not taken for theirs, although
 * they have its address and its fd.
 */
#include <errno.h>
#include <stdio.h>

#include "test_open.h"

struct run {
	int removals, faults, closed, detached;
};

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct run *run = arg;

	(void)dev;
	run->faults += health->fault != MLX5VFIO_OK;
}

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	struct run *run = arg;

	(void)dev;
	run->removals++;
}

static void on_closed(int error, void *arg)
{
	struct run *run = arg;

	run->closed += !error;
}

static void on_detached(void *arg)
{
	struct run *run = arg;

	run->detached++;
}

static const struct mlx5vfio_handlers handlers = {
	.health = on_health,
	.removal = on_removal,
	.closed = on_closed,
	.detached = on_detached,
};

static struct mlx5vfio *attach(struct ibv_context *ctx, struct run *run)
{
	struct mlx5vfio *dev = mlx5vfio_attach(ctx, NULL, NULL);

	ck_assert_ptr_nonnull(dev);
	mlx5vfio_set_handlers(dev, &handlers, run);
	mlx5vfio_set_interval(dev, 10);
	return dev;
}

static void turn_ticks(struct mlx5vfio *dev, uint64_t ticks)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(dev, &stats, sizeof(stats));
	ticks += stats.ticks;
	while (stats.ticks < ticks) {
		test_turn(dev, 1000);
		mlx5vfio_get_stats(dev, &stats, sizeof(stats));
	}
}

/* All that is promised without mlx5vfio_open(): events, the guard, a close that nobody waits for. */
START_TEST(opened_by_the_program)
{
	struct run run = { 0 };
	struct mlx5vfio *dev = attach(support_open(0), &run);

	ck_assert_uint_eq(mlx5vfio_features(dev), MLX5VFIO_FEATURE_GUARD);
	ck_assert(mlx5vfio_guarded(dev));
	support_sim("page-request 0 4");
	while (support_stats(0).pages_given < 4)
		test_turn(dev, 10);
	support_sim("remove-request 0");
	support_sim("aer 0");
	turn_ticks(dev, 5);
	ck_assert_int_eq(run.removals + run.faults, 0);
	support_sim("fatal 0");
	while (!run.faults)
		test_turn(dev, 1000);
	ck_assert_int_eq(mlx5vfio_close(dev), 0);
	while (!run.detached)
		test_turn(dev, 1000);
	ck_assert_int_eq(run.closed, 1);
	ck_assert_int_eq(run.faults, 1);
	ck_assert_int_eq(ibv_close_device(test_open(0)), 0);
}
END_TEST

/* Attached once more, a ctx is known no longer, and says so. */
START_TEST(attached_again)
{
	struct run run = { 0 };
	struct ibv_context *ctx = test_open(0);
	struct mlx5vfio *dev = attach(ctx, &run);

	ck_assert_uint_eq(mlx5vfio_features(dev), ALL_FEATURES);
	mlx5vfio_detach(dev);
	dev = attach(ctx, &run);
	ck_assert_uint_eq(mlx5vfio_features(dev), MLX5VFIO_FEATURE_GUARD);
	mlx5vfio_detach(dev);
	ck_assert_int_eq(run.detached, 2);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

/* Returns whether the second ctx looked like the first. */
static bool close_unseen_and_open(unsigned first, unsigned second)
{
	struct run run = { 0 };
	struct ibv_context *ctx = test_open(first), *other;
	int fd = mlx5dv_vfio_get_events_fd(ctx);
	uintptr_t address = (uintptr_t)ctx;
	struct mlx5vfio *dev;
	bool alike;

	ck_assert_int_eq(ibv_close_device(ctx), 0);
	other = support_open(second);
	alike = (uintptr_t)other == address && mlx5dv_vfio_get_events_fd(other) == fd;
	dev = attach(other, &run);
	ck_assert_uint_eq(mlx5vfio_features(dev), MLX5VFIO_FEATURE_GUARD);
	support_sim("remove-request %u", second);
	turn_ticks(dev, 2);
	ck_assert_int_eq(run.removals, 0);
	mlx5vfio_detach(dev);
	ck_assert_int_eq(ibv_close_device(other), 0);
	return alike;
}

/* Under AddressSanitizer addresses are not given again for long. */
START_TEST(stale_record)
{
	int alike = 0, fds, i;

	close_unseen_and_open(0, 0);
	fds = support_open_fds();
	for (i = 0; i < 20; i++)
		alike += close_unseen_and_open(0, (unsigned)i % 2);
	printf("%d of %d at the same address and fd\n", alike, i);
	ck_assert(test_no_more_fds(fds));
#ifndef __SANITIZE_ADDRESS__
	ck_assert_int_gt(alike, 0);
#endif
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("open stale");
	TCase *tcase = tcase_create("stale");

	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, opened_by_the_program);
	tcase_add_test(tcase, attached_again);
	tcase_add_test(tcase, stale_record);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

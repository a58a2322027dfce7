/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; noasan show seconds=23 */
/*
 * PCI errors. One that does no harm is a warning that goes away by itself; one that the device dies of is
 * MLX5VFIO_PCI_ERROR, whatever noticed the death first, and never an abort.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "test_open.h"

#define WARNED_MS 5000

/* Many more than there are ticks. */
#define STORM_CALLS 500

/* The machine is shared: a number counts as missed when it is missed this often in a row. */
#define TRIES 2

struct run {
	int warnings, clearings, faults;
	int64_t warned_at, cleared_at;
};

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct run *run = arg;

	(void)dev;
	if (health->fault != MLX5VFIO_OK) {
		run->faults++;
	} else if (health->warning) {
		run->warnings++;
		run->warned_at = support_now_ms();
	} else {
		run->clearings++;
		run->cleared_at = support_now_ms();
	}
}

static const struct mlx5vfio_handlers handlers = { .health = on_health };

static void end(struct mlx5vfio *dev)
{
	struct ibv_context *ctx = mlx5vfio_context(dev);

	mlx5vfio_detach(dev);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}

/* Firmware gets the answers that are under way: its device could not be closed in good order. */
static void end_storm(struct mlx5vfio *dev)
{
	support_sim("requests-stop 0");
	while (mlx5vfio_sim_settle(0, 0))
		test_turn(dev, 10);
}

/* What happened between a warning and its end. */
struct suspicion {
	int64_t ms;
	uint64_t ticks, calls, samples;
};

static struct suspicion suspect(bool storm)
{
	struct mlx5vfio_stats before, after = { 0 };
	struct run run = { 0 };
	struct mlx5vfio *dev = test_attach(0, &handlers, &run);

	if (storm)
		support_sim("page-request 0 1 1000000 spaced every 1ms");
	support_sim("aer 0");
	while (!run.warnings)
		test_turn(dev, 1000);
	mlx5vfio_get_stats(dev, &before, sizeof(before));
	while (!run.clearings) { /* the turn that clears it may call without a look */
		mlx5vfio_get_stats(dev, &after, sizeof(after));
		test_turn(dev, 1000);
	}
	ck_assert_int_eq(run.warnings, 1);
	ck_assert_int_eq(run.clearings, 1);
	ck_assert_int_eq(run.faults, 0);
	if (storm)
		end_storm(dev);
	end(dev);
	return (struct suspicion){
		.ms = run.cleared_at - run.warned_at,
		.ticks = after.ticks - before.ticks,
		.calls = after.calls - before.calls,
		.samples = after.samples - before.samples,
	};
}

/*
 * While it is suspected the device is looked at every 50 ms, whatever its interval, and before every
 * call: libmlx5 would abort at what the error leads to.
 */
START_TEST(harmless)
{
	struct suspicion found;
	int try;

	for (try = 0; try < TRIES; try++) {
		found = suspect(_i);
		ck_assert_int_ge(found.ms, WARNED_MS - 5);
		ck_assert_uint_ge(found.samples, found.calls);
		if (found.ticks >= 60 && (!_i || found.calls >= STORM_CALLS))
			break;
	}
	printf("harmless, %-5s: warning gone after %lld ms and %d ticks, %d calls, %d samples\n",
	       _i ? "storm" : "idle", (long long)found.ms, (int)found.ticks, (int)found.calls,
	       (int)found.samples);
	ck_assert_uint_ge(found.ticks, 60); /* 100 on a quiet machine */
	if (_i)
		ck_assert_uint_ge(found.calls, STORM_CALLS);
}
END_TEST

/* A second error within the five seconds starts them again, without another warning. */
START_TEST(harmless_twice)
{
	struct run run = { 0 };
	struct mlx5vfio *dev = test_attach(0, &handlers, &run);
	int64_t again;

	mlx5vfio_set_interval(dev, 10);
	support_sim("aer 0");
	while (!run.warnings || support_now_ms() < run.warned_at + 1000)
		test_turn(dev, 1000);
	again = support_now_ms();
	support_sim("aer 0");
	while (!run.clearings)
		test_turn(dev, 1000);
	ck_assert_int_ge(run.cleared_at - again, WARNED_MS - 5);
	ck_assert_int_eq(run.warnings, 1);
	ck_assert_int_eq(run.faults, 0);
	end(dev);
}
END_TEST

static const char *const loads[] = { "idle", "storm", "commands" };
static const char *const intervals[] = { "500", "50" };

#define LOADS     (int)(sizeof(loads) / sizeof(loads[0]))
#define INTERVALS (int)(sizeof(intervals) / sizeof(intervals[0]))

/* An event may bring us to the dead registers before a tick brings us to the error. */
START_TEST(fatal)
{
	const char *const argv[] = { "prog_open_loaded", loads[_i % LOADS], "aer 0 fatal",
				     intervals[_i / LOADS], NULL };
	int count, latency, warnings;
	char output[128], fault[64];
	int status = support_finish(support_start(argv), output, sizeof(output));

	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "%s: status 0x%x", argv[1],
		      (unsigned)status);
	ck_assert_int_eq(sscanf(output, "%63[^:]: %d: %d: %d", fault, &count, &latency, &warnings),
			 4);
	printf("fatal, %-8s interval %3s ms: %s after %d ms, %d warnings\n", argv[1], argv[3],
	       fault, latency, warnings);
	ck_assert_str_eq(fault, mlx5vfio_fault_str(MLX5VFIO_PCI_ERROR));
	ck_assert_int_eq(count, 1);
	ck_assert_int_le(warnings, 1);
}
END_TEST

static void keep_fault(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	enum mlx5vfio_fault *fault = arg;

	(void)dev;
	*fault = health->fault;
}

/* No tick comes: an event, or the program itself, looks at the device first. */
START_TEST(fatal_before_a_tick)
{
	static const struct mlx5vfio_handlers keep = { .health = keep_fault };
	enum mlx5vfio_fault fault = MLX5VFIO_OK;
	struct mlx5vfio *dev = test_attach(0, &keep, &fault);
	struct ibv_context *ctx = mlx5vfio_context(dev);
	struct mlx5vfio_health health = { 0 };

	mlx5vfio_set_interval(dev, 0);
	test_turn(dev, 0);
	support_sim("aer 0 fatal 0us");
	support_sim("settle 0 10s");
	support_sim("clock-step 2000"); /* libmlx5 would check its health */
	if (_i)
		mlx5vfio_get_health(dev, &health);
	else
		support_sim("spurious 0");
	while (!fault)
		test_turn(dev, 1000);
	mlx5vfio_detach(dev);
	support_sim("heal 0");
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	ck_assert_str_eq(mlx5vfio_fault_str(fault), mlx5vfio_fault_str(MLX5VFIO_PCI_ERROR));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("removal aer");
	TCase *tcase = tcase_create("aer");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, harmless, 0, 2);
	tcase_add_test(tcase, harmless_twice);
	tcase_add_loop_test(tcase, fatal, 0, LOADS * INTERVALS);
	tcase_add_loop_test(tcase, fatal_before_a_tick, 0, 2);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

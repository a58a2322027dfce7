/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; noasan show timeout=180 alone seconds=8 */
/*
 * Somebody else resets the function. The registers read ones for 110 ms and then look healthy, but for
 * the command queue that is gone; libmlx5 never notices. We do, within an interval and under every load:
 * as offline when a look falls into the 110 ms, else as what it is. And a healthy device is never
 * suspected.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "test_open.h"

static const char *const loads[] = { "idle", "storm", "commands" };
static const char *const intervals[] = { "500", "100" };

#define LOADS     (int)(sizeof(loads) / sizeof(loads[0]))
#define INTERVALS (int)(sizeof(intervals) / sizeof(intervals[0]))

/* The machine is shared: a latency counts as missed when it is missed this often in a row. */
#define TRIES    4
#define SLACK_MS 50

static int report_latency(const char *load, const char *interval, char fault[64])
{
	const char *const argv[] = { "prog_open_loaded", load, "foreign-reset 0", interval, NULL };
	int count, latency;
	char output[128];
	int status = support_finish(support_start(argv), output, sizeof(output));

	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "%s: status 0x%x", load,
		      (unsigned)status);
	ck_assert_int_eq(sscanf(output, "%63[^:]: %d: %d", fault, &count, &latency), 3);
	ck_assert_int_eq(count, 1);
	return latency;
}

START_TEST(reported_under_load)
{
	const char *load = loads[_i % LOADS], *interval = intervals[_i / LOADS];
	int within_ms = atoi(interval) + SLACK_MS;
	int latency = 0, try;
	char fault[64] = "";

	for (try = 0; try < TRIES; try++) {
		latency = report_latency(load, interval, fault);
		if (latency <= within_ms)
			break;
	}
	printf("foreign reset, %-8s interval %3s ms: %s after %d ms\n", load, interval, fault,
	       latency);
	ck_assert_int_le(latency, within_ms);
	ck_assert(!strcmp(fault, mlx5vfio_fault_str(MLX5VFIO_FOREIGN_RESET)) ||
		  !strcmp(fault, mlx5vfio_fault_str(MLX5VFIO_PCI_OFFLINE)));
}
END_TEST

/* By if: Check writes a line for each assertion that holds. */
static void look(struct mlx5vfio *dev, struct mlx5vfio_health *health)
{
	if (mlx5vfio_get_health(dev, health))
		ck_abort_msg("no health");
}

/* Looked at only when it is over: then it is told as what it is. */
START_TEST(told_by_its_name)
{
	const struct timespec over = { .tv_nsec = 200000000 };
	struct mlx5vfio *dev = test_attach(0, NULL, NULL);
	struct ibv_context *ctx = mlx5vfio_context(dev);
	struct mlx5vfio_health health;
	uint32_t counter;

	look(dev, &health);
	counter = health.counter;
	support_sim("foreign-reset 0");
	nanosleep(&over, NULL);
	look(dev, &health);
	ck_assert_int_eq(health.fault, MLX5VFIO_FOREIGN_RESET);
	ck_assert_uint_ne(health.counter, counter);
	ck_assert_uint_eq(health.synd, 0);
	ck_assert_uint_eq(health.fw_major, 22);
	mlx5vfio_detach(dev);
	support_sim("clock-rate 1000");
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	support_sim("clock-rate 1");
}
END_TEST

START_TEST(no_false_alarm)
{
	struct mlx5vfio *dev = test_attach(0, NULL, NULL);
	struct ibv_context *ctx = mlx5vfio_context(dev);
	struct mlx5vfio_health health;
	int rounds = support_rounds(1000000), alarms = 0, i;
	int64_t start = support_now_ms();

	support_sim("page-request 0 1 1000000 spaced every 1ms");
	for (i = 0; i < rounds; i++) {
		look(dev, &health);
		alarms += health.fault || health.warning;
		if (i % 1000 == 0)
			test_turn(dev, 0);
	}
	printf("%d samples of a healthy device in %lld ms, %d alarms\n", rounds,
	       (long long)(support_now_ms() - start), alarms);
	ck_assert_int_eq(alarms, 0);
	support_sim("requests-stop 0");
	mlx5vfio_detach(dev);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("foreign reset");
	TCase *tcase = tcase_create("reset");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, reported_under_load, 0, LOADS * INTERVALS);
	tcase_add_test(tcase, told_by_its_name);
	tcase_add_test(tcase, no_false_alarm);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

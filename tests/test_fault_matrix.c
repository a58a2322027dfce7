/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 2; show noasan alone timeout=300 seconds=42 */
/* Every fault under every load: what the guard makes of it, and beside it what libmlx5 does alone. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <mlx5vfio/core.h>

#include "support/support.h"

static const struct fault_row {
	const char *name;
	enum mlx5vfio_fault fault;
	int within_ms; /* one interval of 100 ms and 50 ms more; a stall needs its 2000 ms first */
} faults[] = {
	{ "pci-offline", MLX5VFIO_PCI_OFFLINE, 150 },
	{ "nic-disabled", MLX5VFIO_NIC_DISABLED, 150 },
	{ "nic-reset", MLX5VFIO_NIC_RESET, 150 },
	{ "fatal", MLX5VFIO_FW_FATAL, 150 },
	{ "freeze", MLX5VFIO_STALLED, 2150 },
};

static const char *const loads[] = { "idle", "storm", "commands" };

#define FAULTS (int)(sizeof(faults) / sizeof(faults[0]))
#define LOADS  (int)(sizeof(loads) / sizeof(loads[0]))

/* The machine is shared: a latency counts as missed when it is missed this often in a row. */
#define TRIES 4

static int guarded_latency(const struct fault_row *row, const char *load)
{
	const char *const argv[] = { "prog_guarded", load, row->name, NULL };
	char output[128], fault[64];
	int count, latency;
	int status = support_finish(support_start(argv), output, sizeof(output));

	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "%s, %s: status 0x%x", row->name,
		      load, (unsigned)status);
	ck_assert_int_eq(sscanf(output, "%63[^:]: %d: %d", fault, &count, &latency), 3);
	ck_assert_str_eq(fault, mlx5vfio_fault_str(row->fault));
	ck_assert_int_eq(count, 1);
	return latency;
}

static int best_latency(const struct fault_row *row, const char *load)
{
	int latency = 0;
	int try;

	for (try = 0; try < TRIES; try++) {
		latency = guarded_latency(row, load);
		if (latency <= row->within_ms)
			break;
	}
	return latency;
}

START_TEST(fault_under_load)
{
	const struct fault_row *row = &faults[_i / LOADS];
	const char *load = loads[_i % LOADS];
	const char *const bare[] = { "prog_bare", load, row->name, "1", NULL };
	struct support_child child = support_start(bare);
	char output[128];
	int latency, status;
	long long bare_ms;

	latency = best_latency(row, load);
	status = support_finish(child, output, sizeof(output));
	bare_ms = (long long)support_now_ms() - atoll(output);

	if (!_i)
		printf("%-31s %-9s %22s %26s\n", "fault", "load", "guarded: .health after",
		       "bare loop: SIGABRT after");
	printf("%-31s %-9s %19d ms %23lld ms\n", mlx5vfio_fault_str(row->fault), load, latency,
	       bare_ms);
	ck_assert_int_le(latency, row->within_ms);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fault matrix");
	TCase *tcase = tcase_create("matrix");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, fault_under_load, 0, FAULTS * LOADS);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

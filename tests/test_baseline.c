/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; show noasan light seconds=23 */
/*
 * The problem this project solves: a plain loop around libmlx5 is killed by SIGABRT when its device
 * dies. It also pins the simulator to libmlx5's real behaviour.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

static const char *const faults[] = {
	"fatal", "nic-disabled", "nic-reset", "pci-offline", "freeze",
};

#define FAULTS (int)(sizeof(faults) / sizeof(faults[0]))

START_TEST(libmlx5_aborts)
{
	const char *const argv[] = { "prog_bare", "idle", faults[_i], "0", NULL };
	char output[128];
	int status = support_finish(support_start(argv), output, sizeof(output));
	int64_t died = support_now_ms();

	ck_assert_msg(WIFSIGNALED(status), "%s: status 0x%x", faults[_i], (unsigned)status);
	ck_assert_int_eq(WTERMSIG(status), SIGABRT);
	printf("bare loop, %-14s SIGABRT after %5lld ms\n", faults[_i],
	       (long long)died - atoll(output));
}
END_TEST

/* Neither kills the process: an interrupt for nothing, and commands that hang. */
START_TEST(libmlx5_lives)
{
	static const char *const harmless[] = { "spurious", "hang" };
	const char *const argv[] = { "prog_bare", "idle", harmless[_i], "0", NULL };
	struct support_child child = support_start(argv);
	char output[128];
	int status;

	usleep(4500000);
	ck_assert_int_eq(kill(child.pid, SIGTERM), 0);
	status = support_finish(child, output, sizeof(output));
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("baseline");
	TCase *tcase = tcase_create("bare loop");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, libmlx5_aborts, 0, FAULTS);
	tcase_add_loop_test(tcase, libmlx5_lives, 0, 2);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1 */
/*
 * A child process outlives the program that has a device. libmlx5's group fd is inherited and keeps the
 * device busy; a device opened by mlx5vfio_open() is free as soon as the program is gone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_open.h"

static pid_t run_parent(const char *how, const char *end)
{
	const char *const argv[] = { "prog_open_spawn", how, end, NULL };
	char output[64];
	int status = support_finish(support_start(argv), output, sizeof(output));

	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "%s: status 0x%x", how,
		      (unsigned)status);
	ck_assert_int_gt(atoi(output), 1);
	return atoi(output);
}

/* It is not our child, so that only a pidfd tells of its end. */
static void end_child(pid_t pid)
{
	struct pollfd fd = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };

	ck_assert_int_ge(fd.fd, 0);
	ck_assert_int_eq(poll(&fd, 1, 0), 0); /* it has outlived its parent */
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(poll(&fd, 1, 10000), 1);
	close(fd.fd);
}

static const char *const ends[] = { "exit", "close" };

START_TEST(free_at_once)
{
	pid_t child = run_parent("ours", ends[_i]);
	struct ibv_context *ctx = test_open(0);

	ck_assert_int_eq(ibv_close_device(ctx), 0);
	end_child(child);
}
END_TEST

/* What is to be repaired: if this fails, libmlx5 has learned it. */
START_TEST(libmlx5_alone_stays_busy)
{
	pid_t child = run_parent("plain", ends[_i]);
	char why[256];
	struct ibv_context *ctx;

	errno = 0;
	ctx = mlx5vfio_open(support_pci_name(0), 0, why, sizeof(why));
	ck_assert_ptr_null(ctx);
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_str_ne(why, "");
	end_child(child);
	ctx = test_open(0);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("open child");
	TCase *tcase = tcase_create("child");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, free_at_once, 0, 2);
	tcase_add_loop_test(tcase, libmlx5_alone_stays_busy, 0, 2);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

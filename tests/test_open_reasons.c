/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; show */
/*
 * Every way to fail an open: mlx5vfio_open() gives an errno and a sentence, leaves nothing behind, and
 * mlx5vfio_check() says the same of all that can be seen without trying.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <mlx5vfio/core.h>

#include "support/support.h"

#define WHY_SIZE 256

static const struct reason {
	const char *way;
	const char *name;
	const char *fault; /* control lines, with a semicolon between them; NULL: none */
	const char *sentence;
	int error;
	bool only_tried; /* nothing shows before the attempt */
} reasons[] = {
	{ "no name", NULL, NULL, "the PCI name is malformed", EINVAL, false },
	{ "half a name", "b0:00.0", NULL, "the PCI name is malformed", EINVAL, false },
	{ "no such slot", "0000:b0:20.0", NULL, "the PCI name is malformed", EINVAL, false },
	{ "no such device", "0000:de:00.0", NULL, "there is no such PCI device", ENOENT, false },
	{ "not an mlx5", "0000:af:00.0", NULL,
	  "it is not an mlx5 device: its PCI ids are 8086:", ENODEV, false },
	{ "another driver", "0000:b0:00.0", "bind 0 mlx5_core",
	  "it is bound to the driver mlx5_core", ENXIO, false },
	{ "no driver", "0000:b0:00.0", "unbind 0", "it is not bound to a driver", ENXIO, false },
	{ "no IOMMU group", "0000:b0:00.0", "no-group 0", "it is in no IOMMU group", ENXIO, false },
	{ "no group file", "0000:b0:00.0", "no-group-file 0", "/dev/vfio/10 does not exist", ENXIO,
	  false },
	{ "group not viable", "0000:b0:00.0", "group-member 0 mlx5_core",
	  "its IOMMU group 10 is not viable: these members are not bound to vfio-pci: "
	  "0000:b0:00.1 (mlx5_core)",
	  ENXIO, false },
	{ "denied: container", "0000:b0:00.0", "deny 0 container",
	  "there is no permission to open /dev/vfio/vfio: mode 0000", EACCES, false },
	{ "denied: group", "0000:b0:00.0", "deny 0",
	  "there is no permission to open /dev/vfio/10: mode 0000", EACCES, false },
	{ "locked memory", "0000:b0:00.0", "memlock 0 65536",
	  "memory could not be mapped for the device: this process may lock 64 KiB", ENOMEM, true },
	{ "hung (clock x 600)", "0000:b0:00.0", "hang 0; clock-rate 600",
	  "its firmware does not answer commands", ETIMEDOUT, true },
	{ "not started (x 10^6)", "0000:b0:00.0", "init-stuck 0 on; sleep-rate 1000000",
	  "its firmware is still initializing", EBUSY, true },
};

#define REASONS (int)(sizeof(reasons) / sizeof(reasons[0]))

static void set_faults(const char *lines)
{
	char text[128], *line, *rest = text;

	snprintf(text, sizeof(text), "%s", lines ? lines : "");
	while ((line = strtok_r(rest, ";", &rest)))
		support_sim("%s", line);
}

static void end_faults(void)
{
	support_sim("heal 0");
	support_sim("clock-rate 1");
	support_sim("sleep-rate 1");
}

static void set_locked_memory(rlim_t bytes)
{
	struct rlimit limit;

	support_require(!getrlimit(RLIMIT_MEMLOCK, &limit), "no RLIMIT_MEMLOCK");
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	support_require(!setrlimit(RLIMIT_MEMLOCK, &limit), "cannot set RLIMIT_MEMLOCK");
}

static void print_row(const char *way, int error, int64_t ms, int checked, const char *why)
{
	printf("%-21s %-10s %4lld ms  %-10s %s\n", way, strerrorname_np(error), (long long)ms,
	       checked ? strerrorname_np(-checked) : "-", why);
}

static void expect_failure(const char *way, const char *name, int error, const char *sentence,
			   bool only_tried)
{
	char why[WHY_SIZE] = "", checked_why[WHY_SIZE] = "";
	int fds = support_open_fds();
	int64_t start = support_now_ms();
	struct ibv_context *ctx;
	int failed, checked;

	errno = 0;
	ctx = mlx5vfio_open(name, 0, why, sizeof(why));
	failed = errno;
	start = support_now_ms() - start;
	checked = mlx5vfio_check(name, checked_why, sizeof(checked_why));
	print_row(way, failed, start, checked, why);

	ck_assert_ptr_null(ctx);
	ck_assert_int_eq(failed, error);
	ck_assert_msg(!strncmp(why, sentence, strlen(sentence)), "%s: %s", way, why);
	ck_assert_int_eq(checked, only_tried ? 0 : -error);
	ck_assert_str_eq(checked_why, only_tried ? "" : why);
	ck_assert_int_eq(support_open_fds(), fds);
}

static void expect_success(void)
{
	struct ibv_context *ctx;
	char why[WHY_SIZE] = "x";

	ck_assert_int_eq(mlx5vfio_check("0000:b0:00.0", why, sizeof(why)), 0);
	ck_assert_str_eq(why, "");
	ctx = mlx5vfio_open("0000:B0:00.0", 0, why, sizeof(why));
	ck_assert_msg(ctx != NULL, "%s", why);
	ck_assert_str_eq(why, "");
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}

START_TEST(fails_for_a_reason)
{
	const struct reason *reason = &reasons[_i];

	if (!_i)
		printf("%-21s %-10s %7s  %-10s %s\n", "way to fail", "errno", "time", "check",
		       "cannot open it: …");
	set_locked_memory(65536);
	set_faults(reason->fault);
	expect_failure(reason->way, reason->name, reason->error, reason->sentence,
		       reason->only_tried);
	end_faults();
	expect_success();
}
END_TEST

START_TEST(busy_here)
{
	struct ibv_context *ctx = support_open(0);

	expect_failure("in use here", "0000:b0:00.0", EBUSY, "it is in use by this process already",
		       false);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	expect_success();
}
END_TEST

START_TEST(busy_elsewhere)
{
	const char *const argv[] = { "prog_open_hold", NULL };
	struct support_child child = support_start(argv);
	char output[16], sentence[64];

	ck_assert_int_eq(read(child.out, output, 5), 5);
	snprintf(sentence, sizeof(sentence), "it is in use by process %d (prog_open_hold)",
		 child.pid);
	expect_failure("in use elsewhere", "0000:b0:00.0", EBUSY, sentence, false);
	ck_assert_int_eq(kill(child.pid, SIGTERM), 0);
	support_finish(child, output, sizeof(output));
	expect_success();
}
END_TEST

START_TEST(wrong_flags)
{
	char why[WHY_SIZE];

	errno = 0;
	ck_assert_ptr_null(mlx5vfio_open("0000:b0:00.0", 0x80000000u, why, sizeof(why)));
	print_row("unknown flags", errno, 0, 0, why);
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_str_ne(why, "");
}
END_TEST

/* The sentence is cut, never longer than its room, and not wanted at all. */
START_TEST(room_for_the_sentence)
{
	static const char whole[] = "there is no such PCI device";
	char why[sizeof(whole) + 1];
	size_t room;

	for (room = 1; room <= sizeof(why) - 1; room++) {
		memset(why, 'x', sizeof(why));
		ck_assert_ptr_null(mlx5vfio_open("0000:de:00.0", 0, why, room));
		ck_assert_uint_eq(strlen(why), room < sizeof(whole) ? room - 1 : sizeof(whole) - 1);
		ck_assert_int_eq(why[room], 'x');
	}
	errno = 0;
	ck_assert_ptr_null(mlx5vfio_open("0000:de:00.0", 0, NULL, 0));
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(mlx5vfio_check("0000:de:00.0", NULL, 0), -ENOENT);
}
END_TEST

/* To look is not to touch: it would reset a device, or make it busy for a moment. */
START_TEST(check_opens_nothing)
{
	uint64_t opens = support_stats(0).opens;
	char why[WHY_SIZE];
	int i;

	for (i = 0; i < 10; i++)
		ck_assert_int_eq(mlx5vfio_check("0000:b0:00.0", why, sizeof(why)), 0);
	ck_assert_uint_eq(support_stats(0).opens, opens);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("open reasons");
	TCase *tcase = tcase_create("reasons");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, fails_for_a_reason, 0, REASONS);
	tcase_add_test(tcase, busy_here);
	tcase_add_test(tcase, busy_elsewhere);
	tcase_add_test(tcase, wrong_flags);
	tcase_add_test(tcase, room_for_the_sentence);
	tcase_add_test(tcase, check_opens_nothing);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

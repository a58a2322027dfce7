/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1 */
/*
 * The registers are read only where the process's own map shows what must be there. Where it was
 * broken on purpose, the device is attached unguarded, and nothing is touched that is not there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/support.h"

/* Each in a child: what is broken there stays broken. */
static const char *const breakages[] = {
	"moved",      "unmapped",   "all-unmapped",   "second-page",
	"before-uar", "unreadable", "all-unreadable", "private",
};

static void check_child(const char *how, const char *expected)
{
	const char *const argv[] = { "prog_guard_maps", how, NULL };
	char output[128];
	int status = support_finish(support_start(argv), output, sizeof(output));

	ck_assert_msg(!status, "%s: status 0x%x", how, (unsigned)status);
	ck_assert_msg(!strcmp(output, expected), "%s: %s", how, output);
}

START_TEST(broken_map_means_no_guard)
{
	char expected[64];

	snprintf(expected, sizeof(expected), "guarded 0, health %d\n", -ENOTSUP);
	check_child(breakages[_i], expected);
}
END_TEST

START_TEST(intact_map_means_guard)
{
	check_child("intact", "guarded 1, health 0\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard, the map");
	TCase *tcase = tcase_create("maps");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, broken_map_means_no_guard, 0,
			    (int)(sizeof(breakages) / sizeof(breakages[0])));
	tcase_add_test(tcase, intact_map_means_guard);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

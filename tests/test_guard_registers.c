/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: none; valgrind */
/*
 * Where the registers are looked for, in memory that only pretends to be a BAR: what does not fit
 * is not touched. A line of the process map that is none is passed over.
 */
#include "../core/maps.c"
#include "../core/registers.c"

#include <stdint.h>
#include <sys/mman.h>

#include "support/support.h"

#define PAGES 4u

static uint32_t *bar;

static void set_up(void)
{
	bar = mmap(NULL, PAGES * UAR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		   -1, 0);
	ck_assert_ptr_ne(bar, MAP_FAILED);
	bar[CMDIF_REV_FW_SUB / 4] = htobe32(CMDIF_REVISION << 16);
}

static void tear_down(void)
{
	munmap(bar, PAGES * UAR_PAGE_SIZE);
}

static const void *page_at(unsigned number)
{
	return bar + number * UAR_PAGE_SIZE / sizeof(*bar);
}

START_TEST(found_from_any_page)
{
	ck_assert(registers_find(page_at((unsigned)_i), (uint32_t)_i) == bar);
}
END_TEST

/* A number that leads to before the first address, or to where no mapping begins. */
START_TEST(wrong_number)
{
	const uintptr_t second = UAR_PAGE_SIZE;

	ck_assert(!registers_find((const void *)second, 1));
	ck_assert(!registers_find((const void *)second, 2));
	ck_assert(!registers_find(page_at(1), UINT32_MAX));
	ck_assert(!registers_find(page_at(2), 1));
	ck_assert(!registers_find(page_at(PAGES), PAGES));
}
END_TEST

/* The health counter lies behind the first page: it must be there too, whatever page is used. */
START_TEST(counter_not_mapped)
{
	ck_assert_int_eq(munmap(bar + UAR_PAGE_SIZE / sizeof(*bar), UAR_PAGE_SIZE), 0);
	ck_assert(!registers_find(page_at(0), 0));
}
END_TEST

START_TEST(not_an_mlx5)
{
	bar[CMDIF_REV_FW_SUB / 4] = htobe32((CMDIF_REVISION + 1) << 16);
	ck_assert(!registers_find(page_at(1), 1));
}
END_TEST

static const char *const no_lines[] = { "", "\n", "7f00", "7f00-", "7f00-7f02", "- rw-s", "x-y z" };

START_TEST(lines_of_the_map)
{
	size_t i;

	for (i = 0; i < sizeof(no_lines) / sizeof(no_lines[0]); i++)
		ck_assert_msg(!maps_line_matches(no_lines[i], 0x7f00, 1), "\"%s\"", no_lines[i]);
	ck_assert(maps_line_matches("7f00-7f02 rw-s 00000000 00:00 0", 0x7f00, 2));
	ck_assert(maps_line_matches("7f00-7f02 r--s", 0x7f00, 1));
	ck_assert(!maps_line_matches("7f00-7f02 rw-s", 0x7f00, 3));
	ck_assert(!maps_line_matches("7f00-7f02 rw-s", 0x7f01, 1));
	ck_assert(!maps_line_matches("7f00-7f02 rw-p", 0x7f00, 1));
	ck_assert(!maps_line_matches("7f00-7f02 -w-s", 0x7f00, 1));
	ck_assert(!maps_line_matches("7f00-7f00 rw-s", 0x7f00, 0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard, registers");
	TCase *tcase = tcase_create("registers");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, found_from_any_page, 0, (int)PAGES);
	tcase_add_test(tcase, wrong_number);
	tcase_add_test(tcase, counter_not_mapped);
	tcase_add_test(tcase, not_an_mlx5);
	tcase_add_test(tcase, lines_of_the_map);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

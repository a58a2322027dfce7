/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 256; timeout=300 seconds=9 */
/* Many devices at once, and one device again and again: nothing is left over. */
#include <stdlib.h>

#include "test_sim.h"

enum {
	DEVICES = 256,
	WARM_UP = 5,
	HEAP_GROWTH = 200,
};

struct maps {
	int all, of_devices;
};

static struct maps count_maps(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	struct maps maps = { 0, 0 };
	char line[512];

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		maps.all++;
		maps.of_devices += strstr(line, "mlx5vfio-sim-device") != NULL;
	}
	fclose(file);
	return maps;
}

static void open_and_close(unsigned dev)
{
	struct ibv_context *ctx = support_open(dev);

	sim_close(&ctx, dev, 0);
}

static void expect_as_before(int fds, struct maps before)
{
	struct maps now = count_maps();

	ck_assert_int_eq(support_open_fds(), fds);
	ck_assert_int_eq(now.of_devices, before.of_devices);
	/* The heap grows, that of AddressSanitizer by more than 100; a leak would show each round. */
	ck_assert_int_le(now.all, before.all + HEAP_GROWTH);
}

START_TEST(all_at_once)
{
	static struct ibv_context *contexts[DEVICES];
	struct maps maps;
	int fds;

	open_and_close(0);
	fds = support_open_fds();
	maps = count_maps();
	for (unsigned i = 0; i < DEVICES; i++)
		contexts[i] = support_open(i);
	ck_assert_int_ge(count_maps().of_devices, DEVICES);
	support_sim("page-request * 3");
	for (unsigned i = 0; i < DEVICES; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(contexts[i]);

		ck_assert_ptr_nonnull(pd);
		ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
		ck_assert_int_eq(sim_turn_until_settled(contexts[i], i), 0);
		ck_assert_uint_eq(support_stats(i).pages_given, 3);
	}
	for (unsigned i = 0; i < DEVICES; i++)
		sim_close(&contexts[i * 7 % DEVICES], i * 7 % DEVICES, 0);
	expect_as_before(fds, maps);
}
END_TEST

START_TEST(again_and_again)
{
	int rounds = support_rounds(1000), fds;
	struct maps maps;
	uint64_t opens = support_stats(0).opens;

	for (int i = 0; i < WARM_UP; i++)
		open_and_close(0);
	fds = support_open_fds();
	maps = count_maps();
	for (int i = 0; i < rounds; i++)
		open_and_close(0);
	expect_as_before(fds, maps);
	ck_assert_uint_eq(support_stats(0).opens - opens, (uint64_t)(rounds + WARM_UP));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim many");
	TCase *tcase = tcase_create("devices");

	support_allow_fds();
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, all_at_once);
	tcase_add_test(tcase, again_and_again);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

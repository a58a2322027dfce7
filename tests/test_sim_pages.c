/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; valgrind */
/* Pages lent to the firmware: asked for, given, taken back, and every mistake noticed. */
#include <stdlib.h>

#include "test_sim.h"

enum {
	MANAGE_PAGES = 0x108,
	GIVE = 1,
	TAKE = 2,
	BLOCK_PAGES = 512, /* what libmlx5 maps at once */
	STATUS_BAD_PARAM = 3,
	MAX_PAGES = 4,
};

static struct ibv_context *ctx;
static struct ibv_context *volatile abandoned; /* for leak checkers */

static void set_up(void)
{
	ctx = support_open(0);
}

static void clean_up(void)
{
	sim_close_rest(&ctx);
}

/* A counter that only the control language tells. */
static uint64_t stat_of(const char *name)
{
	char reply[512], *at;

	ck_assert_int_eq(mlx5vfio_sim_control("stats 0", reply, sizeof(reply)), 0);
	at = strstr(reply, name);
	ck_assert_ptr_nonnull(at);
	return strtoull(at + strlen(name), NULL, 10);
}

static void expect_pages(uint64_t requested, uint64_t given)
{
	struct mlx5vfio_sim_stats stats = support_stats(0);

	ck_assert_uint_eq(stats.pages_requested, requested);
	ck_assert_uint_eq(stats.pages_given, given);
}

START_TEST(startup)
{
	ck_assert_uint_eq(support_stats(0).pages_startup, 64 + 256);
	expect_pages(0, 0);
	sim_close(&ctx, 0, 0);
	expect_pages(0, 0); /* kept after the close */
	ck_assert_uint_eq(support_stats(0).pages_startup, 64 + 256);
}
END_TEST

START_TEST(one_request)
{
	support_sim("page-request 0 7");
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	expect_pages(7, 7);
	support_sim("page-request 0 2000"); /* more than a block, and a long chain of mailboxes */
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	expect_pages(2007, 2007);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(spaced_storm)
{
	uint64_t rounds = (uint64_t)support_rounds(1000);

	support_sim("page-request 0 16 %" PRIu64 " spaced", rounds);
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	expect_pages(16 * rounds, 16 * rounds);
	ck_assert_uint_eq(stat_of("requests_dropped="), 0);
	sim_close(&ctx, 0, 0);
}
END_TEST

/* At most one per time; and what is not yet written can be forgotten. */
START_TEST(slow_requests)
{
	int64_t start = support_now_ms();

	support_sim("page-request 0 1 5 spaced every 10ms");
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	ck_assert_int_ge(support_now_ms() - start, 40);
	expect_pages(5, 5);
	support_sim("page-request 0 1 1000 every 10s");
	support_stats(0);
	ck_assert_uint_eq(support_stats(0).requests_pending, 999);
	support_sim("requests-stop 0");
	ck_assert_uint_eq(support_stats(0).requests_pending, 0);
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	expect_pages(6, 6);
	sim_close(&ctx, 0, 0);
}
END_TEST

/*
 * libmlx5 holds one request in work and one in wait: whatever comes in the same batch is lost in it
 * with EINVAL, yet every entry is consumed and the next request served.
 */
static void expect_burst(unsigned count)
{
	uint64_t eqes = support_stats(0).eqes;
	struct mlx5vfio_sim_stats stats;

	support_sim("page-request 0 4 %u", count);
	ck_assert_uint_eq(support_stats(0).eqes, eqes + count);
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), EINVAL);
	expect_pages(4 * count, 8);
	ck_assert_uint_eq(stat_of("requests_dropped="), count - 2);
	stats = support_stats(0);
	ck_assert_uint_eq(stats.eqes, stats.consumed);
	support_sim("page-request 0 3");
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	expect_pages(4 * count + 3, 11);
	sim_close(&ctx, 0, 0);
}

START_TEST(burst_of_three)
{
	expect_burst(3);
}
END_TEST

START_TEST(burst_of_ten)
{
	expect_burst(10);
}
END_TEST

START_TEST(reclaim)
{
	uint64_t rounds = (uint64_t)support_rounds(200);

	support_sim("page-request 0 %" PRIu64 " 2 spaced", 5 * rounds);
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	support_sim("reclaim 0 7");
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	ck_assert_uint_eq(support_stats(0).pages_asked_back, 7);
	ck_assert_uint_eq(support_stats(0).pages_returned, 7);
	support_sim("reclaim 0 9 %" PRIu64 " spaced", rounds);
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	ck_assert_uint_eq(support_stats(0).pages_asked_back, 7 + 9 * rounds);
	ck_assert_uint_eq(support_stats(0).pages_returned, 7 + 9 * rounds);
	support_sim("reclaim 0 %" PRIu64, 10 * rounds); /* more than it has: what is there */
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	ck_assert_uint_eq(support_stats(0).pages_returned, 10 * rounds);
	sim_close(&ctx, 0, 0);
}
END_TEST

/* Whole blocks come back, so libmlx5 unmaps them, and maps others. */
START_TEST(to_and_fro)
{
	uint64_t maps = support_stats(0).dma_maps;

	for (int i = 0; i < support_rounds(20); i++) {
		support_sim("page-request 0 %d", 3 * BLOCK_PAGES);
		ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
		ck_assert_uint_gt(support_stats(0).dma_maps, maps);
		support_sim("reclaim 0 %d", 3 * BLOCK_PAGES);
		ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	}
	ck_assert_uint_eq(support_stats(0).pages_given, support_stats(0).pages_returned);
	sim_close(&ctx, 0, 0);
}
END_TEST

/* MANAGE_PAGES behind libmlx5's back. Returns the status of the command. */
static uint8_t manage(uint16_t what, uint64_t *pages, uint32_t count)
{
	uint8_t in[16 + 8 * MAX_PAGES] = { 0 }, out[16 + 8 * MAX_PAGES] = { 0 };
	int ret;

	put_be16(in, MANAGE_PAGES);
	put_be16(in + 6, what);
	put_be32(in + 12, count);
	for (uint32_t i = 0; i < count; i++)
		put_be64(in + 16 + 8 * i, pages[i]);
	ret = mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out));
	ck_assert_int_eq(ret, out[0] ? EREMOTEIO : 0);
	for (uint32_t i = 0; what == TAKE && i < count; i++)
		pages[i] = (uint64_t)get_be32(out + 16 + 8 * i) << 32 | get_be32(out + 20 + 8 * i);
	return out[0];
}

/* Pages that are mapped and that the firmware does not hold: those that it has just handed back. */
START_TEST(pages_given_wrongly)
{
	uint64_t pages[MAX_PAGES] = { 0 }, twice[2], bad;

	support_sim("page-request 0 64");
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	ck_assert_uint_eq(manage(TAKE, pages, MAX_PAGES), 0);
	ck_assert_uint_eq(support_stats(0).pages_returned, MAX_PAGES);
	twice[0] = twice[1] = pages[0];
	ck_assert_uint_eq(manage(GIVE, twice, 2), STATUS_BAD_PARAM);
	ck_assert_uint_eq(sim_violations(0), 1);
	ck_assert_uint_eq(manage(GIVE, pages, 1), STATUS_BAD_PARAM); /* the first was accepted */
	ck_assert_uint_eq(sim_violations(0), 2);
	bad = pages[1] + 64;
	ck_assert_uint_eq(manage(GIVE, &bad, 1), STATUS_BAD_PARAM);
	ck_assert_uint_eq(sim_violations(0), 3);
	bad = UINT64_C(1) << 45; /* mapped nowhere */
	ck_assert_uint_eq(manage(GIVE, &bad, 1), STATUS_BAD_PARAM);
	ck_assert_uint_eq(sim_violations(0), 4);
	ck_assert_uint_eq(manage(GIVE, pages + 1, MAX_PAGES - 1), 0);
	ck_assert_uint_eq(manage(3, pages, 1), STATUS_BAD_PARAM);
	ck_assert_uint_eq(support_stats(0).pages_given, 64 + MAX_PAGES);
	sim_close(&ctx, 0, 4);
}
END_TEST

/* Memory that firmware holds is unmapped: libmlx5's container, found by its link. */
START_TEST(pages_unmapped)
{
	struct vfio_iommu_type1_dma_unmap all = { .argsz = sizeof(all),
						  .flags = VFIO_DMA_UNMAP_FLAG_ALL };
	char path[64], link[64];
	int fd = 2;
	ssize_t len;

	do {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", ++fd);
		len = readlink(path, link, sizeof(link));
	} while (len != 14 || strncmp(link, "/dev/vfio/vfio", 14));
	ck_assert_uint_eq(sim_violations(0), 0);
	ck_assert_int_eq(ioctl(fd, VFIO_IOMMU_UNMAP_DMA, &all), 0);
	ck_assert_uint_ge(sim_violations(0), 1);
	ck_assert_uint_eq(support_stats(0).dma_maps, 0);
	/* No command reaches the device any more, so it cannot be closed in good order. */
	abandoned = ctx;
	ctx = NULL;
}
END_TEST

/* What libmlx5 makes of failures. */
START_TEST(requests_that_fail)
{
	support_sim("fail 0 108 6");
	support_sim("page-request 0 5");
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), EBUSY);
	expect_pages(5, 0);
	support_sim("map-fail 0");
	support_sim("page-request 0 %d", BLOCK_PAGES);
	errno = 0;
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), -1);
	ck_assert_int_eq(errno, ENOMEM);
	support_sim("page-request 0 %d", BLOCK_PAGES);
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	expect_pages(5 + 2 * BLOCK_PAGES, BLOCK_PAGES);
	sim_close(&ctx, 0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim pages");
	TCase *tcase = tcase_create("pages");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, set_up, clean_up);
	tcase_add_test(tcase, startup);
	tcase_add_test(tcase, one_request);
	tcase_add_test(tcase, spaced_storm);
	tcase_add_test(tcase, slow_requests);
	tcase_add_test(tcase, burst_of_three);
	tcase_add_test(tcase, burst_of_ten);
	tcase_add_test(tcase, reclaim);
	tcase_add_test(tcase, to_and_fro);
	tcase_add_test(tcase, pages_given_wrongly);
	tcase_add_test(tcase, requests_that_fail);
	tcase_add_test(tcase, pages_unmapped); /* the last one: the device stays open */
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

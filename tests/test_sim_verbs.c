/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; valgrind */
/* Verbs and devx commands of every size through libmlx5, and what the device refuses. */
#include <pthread.h>
#include <stdlib.h>

#include "test_sim.h"

enum {
	ALLOC_PD = 0x800,
	DEALLOC_PD = 0x801,
	DESTROY_MKEY = 0x202,
	DESTROY_EQ = 0x302,
	DESTROY_CQ = 0x401,
	DEALLOC_UAR = 0x803,
	DEALLOC_DOMAIN = 0x817,
	DESTROY_UMEM = 0xa0a,
	QUERY_HCA_CAP = 0x100,
	CREATE_FLOW_TABLE = 0x930,
	CAP_SIZE = 4112,
	LONGEST = 64 * 1024,
	STATUS_BAD_OPCODE = 2,
	STATUS_BAD_RESOURCE = 5,
	STATUS_BAD_IN_SIZE = 0x50,
};

static struct ibv_context *ctx;

static void set_up(void)
{
	ctx = support_open(0);
}

static void clean_up(void)
{
	sim_close_rest(&ctx);
}

/* A devx command of any size. Returns its status. */
static uint8_t command(uint16_t opcode, uint16_t modifier, uint32_t object, size_t in_size,
		       uint8_t *out, size_t out_size)
{
	uint8_t *in = calloc(1, in_size);
	int ret;

	ck_assert_ptr_nonnull(in);
	put_be16(in, opcode);
	put_be16(in + 6, modifier);
	put_be32(in + 8, object);
	memset(out, 0, out_size);
	ret = mlx5dv_devx_general_cmd(ctx, in, in_size, out, out_size);
	free(in);
	ck_assert_int_eq(ret, out[0] ? EREMOTEIO : 0);
	return out[0];
}

START_TEST(memory_regions)
{
	static const size_t sizes[] = { 1, 100, 4096, 4097, 65536, 1 << 20, 5 << 20 };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint64_t maps = support_stats(0).dma_maps;

	ck_assert_ptr_nonnull(pd);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *memory = malloc(sizes[i]);
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizes[i], IBV_ACCESS_LOCAL_WRITE);

		ck_assert_ptr_nonnull(mr);
		ck_assert_uint_eq(support_stats(0).dma_maps, maps + 1);
		ck_assert_int_eq(ibv_dereg_mr(mr), 0);
		ck_assert_uint_eq(support_stats(0).dma_maps, maps);
		free(memory);
	}
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(user_memory)
{
	uint8_t *memory = malloc(LONGEST);
	struct mlx5dv_devx_umem *umems[8];

	for (size_t i = 0; i < 8; i++) {
		umems[i] = mlx5dv_devx_umem_reg(ctx, memory + 1000 * i, 8000 * (i + 1) - 1000 * i,
						IBV_ACCESS_LOCAL_WRITE);
		ck_assert_ptr_nonnull(umems[i]);
		for (size_t j = 0; j < i; j++)
			ck_assert_uint_ne(umems[i]->umem_id, umems[j]->umem_id);
	}
	for (size_t i = 0; i < 8; i++)
		ck_assert_int_eq(mlx5dv_devx_umem_dereg(umems[i]), 0);
	free(memory);
	sim_close(&ctx, 0, 0);
}
END_TEST

/* Both chains of mailboxes grow and shrink; a length that ends at a block, before it and behind. */
START_TEST(messages_of_all_sizes)
{
	static const size_t sizes[] = { 16,   17,   64,   527,  528,  529,   1039,   1040,
					1041, 4096, 4112, 4113, 8192, 20000, LONGEST };
	const size_t count = sizeof(sizes) / sizeof(sizes[0]);
	uint8_t *out = malloc(LONGEST);

	for (size_t i = 0; i < count * count; i++) {
		size_t in_size = sizes[i / count], out_size = sizes[i % count];

		ck_assert_uint_eq(command(QUERY_HCA_CAP, 0, 0, in_size, out, out_size), 0);
		/* log_max_srq_sz, where the answer is long enough for it */
		if (out_size > 0x20)
			ck_assert_uint_eq(out[0x20], 15);
	}
	free(out);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(capabilities)
{
	uint8_t out[CAP_SIZE], part[64];

	ck_assert_uint_eq(command(QUERY_HCA_CAP, 1, 0, 16, out, sizeof(out)), 0);
	ck_assert_uint_eq(out[0x10 + 0x36], 1); /* an Ethernet port */
	ck_assert_uint_eq(out[0x10 + 0x37], 1);
	ck_assert_uint_eq(command(QUERY_HCA_CAP, 1, 0, 16, part, sizeof(part)), 0);
	ck_assert_mem_eq(out, part, sizeof(part));
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(unknown_commands)
{
	uint8_t out[16], in[64] = { 0 };

	ck_assert_uint_eq(command(0x999, 0, 0, 16, out, sizeof(out)), STATUS_BAD_OPCODE);
	ck_assert_uint_eq(command(CREATE_FLOW_TABLE, 0, 0, 64, out, sizeof(out)),
			  STATUS_BAD_OPCODE);
	ck_assert_uint_eq(command(ALLOC_PD, 0, 0, 12, out, sizeof(out)), STATUS_BAD_IN_SIZE);
	put_be16(in, CREATE_FLOW_TABLE);
	ck_assert_ptr_null(mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out)));
	ck_assert_int_eq(errno, EREMOTEIO);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(destroying_nothing)
{
	static const uint16_t opcodes[] = { DEALLOC_PD,  DESTROY_MKEY,   DESTROY_EQ,  DESTROY_CQ,
					    DEALLOC_UAR, DEALLOC_DOMAIN, DESTROY_UMEM };
	const uint64_t count = sizeof(opcodes) / sizeof(opcodes[0]);
	uint8_t out[16];

	for (uint64_t i = 0; i < count; i++) {
		ck_assert_uint_eq(command(opcodes[i], 0, 63, 16, out, sizeof(out)),
				  STATUS_BAD_RESOURCE);
		ck_assert_uint_eq(sim_violations(0), i + 1);
	}
	sim_close(&ctx, 0, count);
}
END_TEST

START_TEST(destroying_twice)
{
	uint8_t out[16];
	uint32_t number;

	ck_assert_uint_eq(command(ALLOC_PD, 0, 0, 16, out, sizeof(out)), 0);
	number = get_be32(out + 8) & 0xffffff;
	ck_assert_uint_ne(number, 0);
	ck_assert_uint_eq(command(DEALLOC_PD, 0, number, 16, out, sizeof(out)), 0);
	ck_assert_uint_eq(sim_violations(0), 0);
	ck_assert_uint_eq(command(DEALLOC_PD, 0, number, 16, out, sizeof(out)),
			  STATUS_BAD_RESOURCE);
	sim_close(&ctx, 0, 1);
}
END_TEST

/* More objects than the first table of numbers holds, all different. */
START_TEST(many_objects)
{
	enum { COUNT = 1000 };
	static struct ibv_pd *pds[COUNT];
	static bool seen[1 << 16];
	int count = support_rounds(COUNT);

	for (int i = 0; i < count; i++) {
		struct mlx5dv_pd pd = { .pdn = 0 };
		struct mlx5dv_obj object = { .pd = { .out = &pd } };

		object.pd.in = pds[i] = ibv_alloc_pd(ctx);
		ck_assert_ptr_nonnull(pds[i]);
		ck_assert_int_eq(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
		ck_assert_uint_lt(pd.pdn, sizeof(seen));
		ck_assert(!seen[pd.pdn]);
		seen[pd.pdn] = true;
	}
	for (int i = 0; i < count; i++)
		ck_assert_int_eq(ibv_dealloc_pd(pds[i]), 0);
	sim_close(&ctx, 0, 0);
}
END_TEST

/* Slots 0 and 31 ring one register, from two threads. */
static void *verbs(void *arg)
{
	static uint8_t memory[3 * SIM_PAGE];
	int *rounds = arg;

	for (; *rounds > 0; --*rounds) {
		struct ibv_pd *pd = ibv_alloc_pd(ctx);
		struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory), 0) : NULL;

		if (!mr || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd))
			break;
	}
	return NULL;
}

START_TEST(verbs_beside_page_requests)
{
	const int all = support_rounds(2000);
	int rounds = all;
	pthread_t thread;

	support_sim("page-request 0 2 %d spaced", all);
	ck_assert_int_eq(pthread_create(&thread, NULL, verbs, &rounds), 0);
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(rounds, 0);
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	ck_assert_uint_eq(support_stats(0).pages_given, 2 * (uint64_t)all);
	sim_close(&ctx, 0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim verbs");
	TCase *tcase = tcase_create("verbs");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, set_up, clean_up);
	tcase_add_test(tcase, memory_regions);
	tcase_add_test(tcase, user_memory);
	tcase_add_test(tcase, messages_of_all_sizes);
	tcase_add_test(tcase, capabilities);
	tcase_add_test(tcase, unknown_commands);
	tcase_add_test(tcase, destroying_nothing);
	tcase_add_test(tcase, destroying_twice);
	tcase_add_test(tcase, many_objects);
	tcase_add_test(tcase, verbs_beside_page_requests);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

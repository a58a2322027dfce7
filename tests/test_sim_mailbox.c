/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; valgrind */
/*
 * The command queue, driven by hand: what libmlx5 would never do. A mistake ends the command with a
 * delivery status and is counted; the device lives on.
 */
#include <stdlib.h>

#include "test_sim.h"

enum {
	QUEUE_IOVA = 0x10000,
	MAIL_IOVA = 0x100000,
	MAIL_PAGES = 8,
	SLOT_SIZE = 64,
	SLOTS = 32,
	BLOCK_DATA = 512,
	BLOCK_NEXT = 560,
	BLOCK_NUMBER = 568,

	ENABLE_HCA = 0x104,
	QUERY_HCA_CAP = 0x100,
	QUERY_PAGES = 0x107,
	CAP_SIZE = 4112,

	BAD_BLOCK = 3,
	BAD_OUT_POINTER = 4,
	BAD_IN_POINTER = 5,
	BAD_IN_SIZE = 7,
	BAD_OUT_SIZE = 8,

	STATUS_BAD_OPCODE = 2,
	STATUS_BAD_STATE = 4,
	STATUS_BAD_IN_SIZE = 0x50,
};

static struct sim_raw raw;
static uint8_t *queue, *mail;

static uint8_t *block(unsigned number)
{
	return mail + (size_t)number * SIM_PAGE;
}

/* Chains the pages of mail. */
static void chain_blocks(void)
{
	memset(mail, 0, MAIL_PAGES * SIM_PAGE);
	for (unsigned i = 0; i < MAIL_PAGES; i++) {
		uint64_t next = i + 1 < MAIL_PAGES ? MAIL_IOVA + (i + 1) * SIM_PAGE : 0;

		put_be64(block(i) + BLOCK_NEXT, next);
		put_be32(block(i) + BLOCK_NUMBER, i);
	}
}

static uint8_t *allocate(size_t size)
{
	uint8_t *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	return memory;
}

static uint8_t *slot_at(unsigned slot)
{
	return queue + (size_t)slot * SLOT_SIZE;
}

/* A command whose input and output use one chain; both fit into it one after the other. */
static void fill_slot(unsigned slot, uint16_t opcode, uint32_t in_size, uint32_t out_size)
{
	uint8_t *at = slot_at(slot);

	memset(at, 0, SLOT_SIZE);
	at[0] = 7;
	put_be32(at + 4, in_size);
	put_be64(at + 8, MAIL_IOVA);
	put_be16(at + 16, opcode);
	put_be64(at + 48, MAIL_IOVA);
	put_be32(at + 56, out_size);
}

/* Hands a slot over and waits for it. Returns how the delivery ended. */
static uint8_t ring(unsigned slot)
{
	uint8_t *own = slot_at(slot) + 63;
	int64_t end = support_now_ms() + SIM_PATIENCE;

	__atomic_store_n(own, 1, __ATOMIC_RELEASE);
	sim_write(raw.bar, SIM_REG_DOORBELL, UINT32_C(1) << slot);
	while (__atomic_load_n(own, __ATOMIC_ACQUIRE) & 1)
		ck_assert_msg(support_now_ms() < end, "the command does not end");
	return *own >> 1;
}

static uint8_t run(uint16_t opcode, uint32_t in_size, uint32_t out_size)
{
	fill_slot(0, opcode, in_size, out_size);
	return ring(0);
}

static uint8_t status(unsigned slot)
{
	return slot_at(slot)[32];
}

static void set_up(void)
{
	raw = sim_raw_open(0);
	queue = allocate(SIM_PAGE);
	mail = allocate(MAIL_PAGES * SIM_PAGE);
	chain_blocks();
	ck_assert_int_eq(sim_map(raw.container, queue, QUEUE_IOVA, SIM_PAGE), 0);
	for (unsigned i = 0; i < MAIL_PAGES; i++)
		ck_assert_int_eq(
			sim_map(raw.container, block(i), MAIL_IOVA + i * SIM_PAGE, SIM_PAGE), 0);
	sim_write(raw.bar, SIM_REG_CMDQ_LOW, QUEUE_IOVA);
	ck_assert_uint_eq(run(ENABLE_HCA, 12, 12), 0);
	ck_assert_uint_eq(status(0), 0);
}

static void tear_down(void)
{
	sim_raw_close(&raw);
	munmap(queue, SIM_PAGE);
	munmap(mail, MAIL_PAGES * SIM_PAGE);
}

START_TEST(long_answer)
{
	ck_assert_uint_eq(run(QUERY_HCA_CAP, 16, CAP_SIZE), 0);
	ck_assert_uint_eq(status(0), 0);
	/* The answer begins with 16 bytes in the slot, so capabilities begin in the first block. */
	ck_assert_uint_eq(block(0)[0x10], 15);
	ck_assert_uint_eq(sim_violations(0), 0);
}
END_TEST

START_TEST(shortest_messages)
{
	ck_assert_uint_eq(run(ENABLE_HCA, 12, 8), 0);
	ck_assert_uint_eq(status(0), 0);
	ck_assert_uint_eq(run(ENABLE_HCA, 8, 12), 0);
	ck_assert_uint_eq(status(0), STATUS_BAD_IN_SIZE);
	ck_assert_uint_eq(run(ENABLE_HCA, 7, 12), BAD_IN_SIZE);
	ck_assert_uint_eq(run(ENABLE_HCA, 12, 7), BAD_OUT_SIZE);
	ck_assert_uint_eq(run(ENABLE_HCA, 17 << 20, 12), BAD_IN_SIZE);
	ck_assert_uint_eq(run(ENABLE_HCA, 12, 17 << 20), BAD_OUT_SIZE);
	ck_assert_uint_eq(run(0xfff, 16, 16), 0);
	ck_assert_uint_eq(status(0), STATUS_BAD_OPCODE);
	ck_assert_uint_eq(run(0x800, 16, 16), 0); /* before INIT_HCA */
	ck_assert_uint_eq(status(0), STATUS_BAD_STATE);
}
END_TEST

START_TEST(wrong_numbers)
{
	put_be32(block(1) + BLOCK_NUMBER, 2);
	ck_assert_uint_eq(run(QUERY_PAGES, 16 + 2 * BLOCK_DATA, 16), BAD_BLOCK);
	ck_assert_uint_eq(sim_violations(0), 1);
	ck_assert_uint_eq(run(QUERY_HCA_CAP, 16, CAP_SIZE), BAD_BLOCK);
	ck_assert_uint_eq(sim_violations(0), 2);
	/* What ends before the bad block is fine. */
	ck_assert_uint_eq(run(QUERY_PAGES, 16 + BLOCK_DATA, 16), 0);
	ck_assert_uint_eq(sim_violations(0), 2);
}
END_TEST

START_TEST(pointers_to_nowhere)
{
	put_be64(block(0) + BLOCK_NEXT, 0);
	ck_assert_uint_eq(run(QUERY_PAGES, 16 + 2 * BLOCK_DATA, 16), BAD_IN_POINTER);
	ck_assert_uint_eq(sim_violations(0), 1);
	ck_assert_uint_eq(run(QUERY_HCA_CAP, 16, CAP_SIZE), BAD_OUT_POINTER);
	ck_assert_uint_eq(sim_violations(0), 2);
	put_be64(block(0) + BLOCK_NEXT, MAIL_IOVA + SIM_PAGE + 64); /* not aligned */
	ck_assert_uint_eq(run(QUERY_PAGES, 16 + 2 * BLOCK_DATA, 16), BAD_IN_POINTER);
	ck_assert_uint_eq(sim_violations(0), 3);
	put_be64(block(0) + BLOCK_NEXT, MAIL_IOVA + SIM_PAGE);
	ck_assert_uint_eq(run(QUERY_PAGES, 16 + 2 * BLOCK_DATA, 16), 0);
}
END_TEST

/* DMA only through mapped memory: the same pointer, before and after an unmap. */
START_TEST(unmapped_block)
{
	struct vfio_iommu_type1_dma_unmap unmap = { .argsz = sizeof(unmap),
						    .iova = MAIL_IOVA,
						    .size = SIM_PAGE };

	ck_assert_uint_eq(run(QUERY_PAGES, 64, 16), 0);
	ck_assert_int_eq(ioctl(raw.container, VFIO_IOMMU_UNMAP_DMA, &unmap), 0);
	ck_assert_uint_eq(run(QUERY_PAGES, 64, 16), BAD_IN_POINTER);
	ck_assert_uint_eq(sim_violations(0), 1);
	ck_assert_uint_eq(run(QUERY_PAGES, 16, 16), 0); /* needs no block */
}
END_TEST

/* One doorbell, several slots; and a slot whose own doorbell was overwritten. */
START_TEST(all_slots)
{
	for (unsigned i = 0; i < SLOTS - 1; i++) {
		fill_slot(i, QUERY_PAGES, 16, 16);
		__atomic_store_n(slot_at(i) + 63, 1, __ATOMIC_RELEASE);
	}
	fill_slot(SLOTS - 1, QUERY_PAGES, 16, 16);
	ck_assert_uint_eq(ring(SLOTS - 1), 0);
	for (unsigned i = 0; i < SLOTS - 1; i++) {
		int64_t end = support_now_ms() + SIM_PATIENCE;

		while (__atomic_load_n(slot_at(i) + 63, __ATOMIC_ACQUIRE))
			ck_assert_msg(support_now_ms() < end, "slot %u does not end", i);
		ck_assert_uint_eq(status(i), 0);
	}
	ck_assert_uint_eq(sim_violations(0), 0);
}
END_TEST

START_TEST(doorbell_without_queue)
{
	sim_write(raw.bar, SIM_REG_CMDQ_LOW, 0x7000); /* nothing is mapped there */
	sim_write(raw.bar, SIM_REG_DOORBELL, 1);
	ck_assert_uint_eq(sim_violations(0), 1);
	sim_write(raw.bar, SIM_REG_CMDQ_LOW, QUEUE_IOVA);
	ck_assert_uint_eq(run(QUERY_PAGES, 16, 16), 0);
	ck_assert_uint_eq(sim_violations(0), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim mailbox");
	TCase *tcase = tcase_create("command queue");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, long_answer);
	tcase_add_test(tcase, shortest_messages);
	tcase_add_test(tcase, wrong_numbers);
	tcase_add_test(tcase, pointers_to_nowhere);
	tcase_add_test(tcase, unmapped_block);
	tcase_add_test(tcase, all_slots);
	tcase_add_test(tcase, doorbell_without_queue);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

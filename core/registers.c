/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's health registers: the initialization segment at the start of BAR0. */
#include <endian.h>

#include "maps.h"
#include "registers.h"

/*
 * Byte offsets, from struct mlx5_init_seg and struct health_buffer of rdma-core
 * (providers/mlx5/mlx5_vfio.h) and the programmer's reference manual. All registers are big-endian.
 */
enum {
	FW_REV = 0x0,              /* minor, major */
	CMDIF_REV_FW_SUB = 0x4,    /* command interface revision, subminor */
	CMDQ_ADDR_L_SZ = 0x14,     /* 31:12: command queue page, 10:8: NIC state */
	HEALTH_ASSERT_VAR = 0x200, /* five words */
	HEALTH_ASSERT_EXIT = 0x220,
	HEALTH_ASSERT_CALLRA = 0x224,
	HEALTH_FW_VER = 0x230,
	HEALTH_HW_ID = 0x234,
	HEALTH_RFR = 0x238,      /* bit 31: recovery request */
	HEALTH_SYND = 0x23c,     /* irisc index, syndrome, extended syndrome */
	HEALTH_COUNTER = 0x1010, /* low 24 bits */
	REGISTERS_END = 0x1014,
};

#define UAR_PAGE_SIZE  4096u
#define CMDIF_REVISION 5
#define COUNTER_MASK   0xffffffu

static uint32_t read_register(bar_t bar, unsigned offset)
{
	return be32toh(bar[offset / sizeof(*bar)]);
}

bool registers_answer(bar_t bar)
{
	return read_register(bar, CMDIF_REV_FW_SUB) >> 16 == CMDIF_REVISION;
}

/*
 * A device that is off the bus already reads all ones everywhere; it is found all the same, so
 * that its death can be told.
 */
static bool looks_like_mlx5(bar_t bar)
{
	if (read_register(bar, FW_REV) != UINT32_MAX)
		return registers_answer(bar);
	return read_register(bar, CMDIF_REV_FW_SUB) == UINT32_MAX &&
	       read_register(bar, HEALTH_FW_VER) == UINT32_MAX;
}

bar_t registers_find(const void *uar_page, uint32_t uar_number)
{
	uintptr_t page = (uintptr_t)uar_page;
	uint64_t distance = (uint64_t)uar_number * UAR_PAGE_SIZE;
	uint64_t size = distance + UAR_PAGE_SIZE;
	bar_t bar;

	if (distance >= page)
		return NULL;
	if (size < REGISTERS_END)
		size = REGISTERS_END;
	if (!maps_contains(page - distance, size))
		return NULL;
	bar = (bar_t)(page - distance);
	return looks_like_mlx5(bar) ? bar : NULL;
}

static void decode_syndrome(uint32_t word, struct mlx5vfio_health *health)
{
	health->irisc_index = (uint8_t)(word >> 24);
	health->synd = (uint8_t)(word >> 16);
	health->ext_synd = (uint16_t)word;
}

void registers_sample(bar_t bar, struct registers_sample *sample)
{
	uint32_t queue, synd;

	sample->fw_ver = read_register(bar, HEALTH_FW_VER);
	queue = read_register(bar, CMDQ_ADDR_L_SZ);
	sample->queue_page = queue >> 12;
	sample->nic_state = queue >> 8 & 7;
	sample->recovery_request = read_register(bar, HEALTH_RFR) >> 31;
	synd = read_register(bar, HEALTH_SYND);
	sample->synd = (uint8_t)(synd >> 16);
	sample->ext_synd = (uint16_t)synd;
	sample->counter = registers_counter(bar);
}

uint32_t registers_counter(bar_t bar)
{
	return read_register(bar, HEALTH_COUNTER) & COUNTER_MASK;
}

void registers_report(bar_t bar, struct mlx5vfio_health *health)
{
	uint32_t fw_rev = read_register(bar, FW_REV);
	unsigned i;

	health->fw_major = (uint16_t)fw_rev;
	health->fw_minor = (uint16_t)(fw_rev >> 16);
	health->fw_subminor = (uint16_t)read_register(bar, CMDIF_REV_FW_SUB);
	for (i = 0; i < 5; i++)
		health->assert_var[i] = read_register(bar, HEALTH_ASSERT_VAR + 4 * i);
	health->assert_exit_ptr = read_register(bar, HEALTH_ASSERT_EXIT);
	health->assert_callra = read_register(bar, HEALTH_ASSERT_CALLRA);
	health->hw_id = read_register(bar, HEALTH_HW_ID);
	health->recovery_request = read_register(bar, HEALTH_RFR) >> 31;
	health->counter = registers_counter(bar);
	decode_syndrome(read_register(bar, HEALTH_SYND), health);
}

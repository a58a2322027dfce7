/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A completion queue of 64 entries that reports to an event queue, by way of DEVX. Offsets are
 * those of the programmer's reference manual. What makes completions (a QP, an SQ) is not here.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

enum {
	CQ_LOG_ENTRIES = 6,
	CQ_ENTRIES = 1 << CQ_LOG_ENTRIES,
	CQ_ENTRY_SIZE = 64,
	CQ_PAGE = 4096, /* of the device: a page of entries, and one for the doorbell record */
};

struct devx_cq {
	uint8_t *memory;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_obj *obj;
	uint32_t number, consumer, events;
};

static void devx_put32(void *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

/* Byte offsets in CREATE_CQ; the CQ context begins at 0x10. Memory is told as offsets in a umem. */
static struct mlx5dv_devx_obj *devx_cq_command(struct devx_cq *cq, struct ibv_context *ctx,
					       uint32_t eq_number)
{
	uint8_t in[0x110] = { 0 }, out[0x10] = { 0 };
	struct mlx5dv_devx_obj *obj;

	devx_put32(in + 0x00, 0x400 << 16); /* the opcode */
	devx_put32(in + 0x10, 1 << 25);     /* dbr_umem_valid */
	devx_put32(in + 0x14, cq->umem->umem_id);
	devx_put32(in + 0x1c, CQ_LOG_ENTRIES << 24 | cq->uar->page_id);
	devx_put32(in + 0x24, eq_number);         /* c_eqn */
	devx_put32(in + 0x4c, CQ_PAGE);           /* dbr_addr, its lower half */
	devx_put32(in + 0x58, cq->umem->umem_id); /* of the entries, at offset 0 */
	devx_put32(in + 0x5c, 1U << 31);          /* cq_umem_valid */
	obj = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	cq->number = (uint32_t)out[9] << 16 | (uint32_t)out[10] << 8 | out[11];
	return obj;
}

/* In this order; memory that the device did not give up is not freed, it may still be written. */
static void devx_cq_destroy(struct devx_cq *cq)
{
	if (cq->obj)
		mlx5dv_devx_obj_destroy(cq->obj);
	if (cq->uar)
		mlx5dv_devx_free_uar(cq->uar);
	if (!cq->umem || !mlx5dv_devx_umem_dereg(cq->umem))
		free(cq->memory);
	*cq = (struct devx_cq){ 0 };
}

/* eq_number is what mlx5vfio_eq_number() says. Returns 0 or a negative errno. */
static int devx_cq_create(struct devx_cq *cq, struct ibv_context *ctx, uint32_t eq_number)
{
	int i, err;

	*cq = (struct devx_cq){ .memory = aligned_alloc(CQ_PAGE, 2 * CQ_PAGE) };
	if (!cq->memory)
		return -ENOMEM;
	memset(cq->memory, 0, 2 * CQ_PAGE);
	for (i = 1; i <= CQ_ENTRIES; i++) /* the owner bit: not written yet */
		cq->memory[i * CQ_ENTRY_SIZE - 1] = 1;
	cq->umem = mlx5dv_devx_umem_reg(ctx, cq->memory, 2 * CQ_PAGE, IBV_ACCESS_LOCAL_WRITE);
	cq->uar = cq->umem ? mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC) : NULL;
	cq->obj = cq->uar ? devx_cq_command(cq, ctx, eq_number) : NULL;
	if (cq->obj)
		return 0;
	err = errno ? errno : EIO;
	devx_cq_destroy(cq);
	return -err;
}

/* Takes the entries that the device has written and says how many; a program looks at each. */
static unsigned devx_cq_take(struct devx_cq *cq)
{
	unsigned taken = 0;
	const uint8_t *owner;

	for (;; taken++, cq->consumer++) {
		owner = cq->memory + (cq->consumer % CQ_ENTRIES + 1) * CQ_ENTRY_SIZE - 1;
		if ((__atomic_load_n(owner, __ATOMIC_ACQUIRE) ^ cq->consumer / CQ_ENTRIES) & 1)
			break;
	}
	devx_put32(cq->memory + CQ_PAGE, cq->consumer & 0xffffff);
	return taken;
}

/* One event for the next entry that is written, or has been: each event needs another call. */
static void devx_cq_arm(struct devx_cq *cq)
{
	uint32_t arm = (cq->events++ & 3) << 28 | (cq->consumer & 0xffffff);
	volatile uint64_t *doorbell = (void *)((uint8_t *)cq->uar->base_addr + 0x20);

	devx_put32(cq->memory + CQ_PAGE + 4, arm);
	__sync_synchronize(); /* the record before the doorbell */
	*doorbell = htobe64((uint64_t)arm << 32 | cq->number);
}

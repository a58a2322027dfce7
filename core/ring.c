/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory side of an event queue: entries that the device writes, doorbells that we ring. */
#include <endian.h>
#include <string.h>

#include "ring.h"

/*
 * An entry, from the programmer's reference manual (EQE format), and the doorbells of a UAR page.
 */
enum {
	ENTRY_SIZE = 64,
	ENTRY_TYPE = 1,
	ENTRY_SUB_TYPE = 3,
	ENTRY_RESERVED = 4, /* up to the data */
	ENTRY_DATA = 32,
	ENTRY_OWNER = 63,
	DOORBELL_ARM = 0x40,
	DOORBELL_UPDATE = 0x48,
	COUNTER_MASK = 0xffffff,
};

/* The words of an entry's data that say what it is about. */
enum {
	WORD_CQ_ERROR = 0,   /* CQ number */
	WORD_PORT = 2,       /* bits 31:28 */
	WORD_COMPLETION = 6, /* CQ number */
	WORD_QUEUE = 6,      /* QP or SRQ number */
	NUMBER_MASK = 0xffffff,
};

/*
 * The device must hear of taken entries before it thinks the queue full; libmlx5 keeps as many
 * spare.
 */
#define SPARE_ENTRIES 128

static uint8_t *entry_at(const struct ring *ring, uint32_t index)
{
	uint32_t mask = (UINT32_C(1) << ring->log_size) - 1;

	return ring->entries + (size_t)(index & mask) * ENTRY_SIZE;
}

/* The owner bit that the device writes on its present way round. */
static uint8_t owner_at(const struct ring *ring, uint32_t index)
{
	return index >> ring->log_size & 1;
}

/* What the entry says is read after its owner bit: acquire. */
static bool is_written(const struct ring *ring, uint32_t index)
{
	const uint8_t *owner = entry_at(ring, index) + ENTRY_OWNER;

	return (__atomic_load_n(owner, __ATOMIC_ACQUIRE) & 1) == owner_at(ring, index);
}

static bool all_zero(const uint8_t *bytes, size_t size)
{
	while (size && !*bytes) {
		bytes++;
		size--;
	}
	return !size;
}

/*
 * libmlx5 hands the memory out as malloc() had it, and the device may write as soon as the queue
 * exists. What it has written is told from what was there by all that an entry has fixed: a wanted
 * type, the first owner bit, and zeros where the manual has reserved bytes. Completions cannot come yet,
 * because no CQ knows the queue.
 */
static bool is_early_event(const struct ring *ring, uint32_t index, uint64_t events)
{
	const uint8_t *entry = entry_at(ring, index);
	uint8_t type = entry[ENTRY_TYPE];

	return is_written(ring, index) && !entry[ENTRY_OWNER] && type && type < 64 &&
	       events >> type & 1 && !entry[ENTRY_TYPE - 1] && !entry[ENTRY_SUB_TYPE - 1] &&
	       all_zero(entry + ENTRY_RESERVED, ENTRY_DATA - ENTRY_RESERVED);
}

void ring_init(struct ring *ring, uint64_t events)
{
	uint32_t size = UINT32_C(1) << ring->log_size;
	uint32_t i = 0;

	while (i < size && is_early_event(ring, i, events))
		i++;
	for (; i < size; i++)
		entry_at(ring, i)[ENTRY_OWNER] = 1;
}

static void decode(const uint8_t *entry, struct mlx5vfio_event *event)
{
	uint32_t words[7];
	unsigned i;

	event->type = entry[ENTRY_TYPE];
	event->sub_type = entry[ENTRY_SUB_TYPE];
	memcpy(words, entry + ENTRY_DATA, sizeof(words));
	for (i = 0; i < 7; i++)
		event->raw[i] = be32toh(words[i]);
	switch (event->type) {
	case MLX5VFIO_EVENT_COMPLETION:
		event->cqn = event->raw[WORD_COMPLETION] & NUMBER_MASK;
		break;
	case MLX5VFIO_EVENT_CQ_ERROR:
		event->cqn = event->raw[WORD_CQ_ERROR] & NUMBER_MASK;
		break;
	case MLX5VFIO_EVENT_PORT_STATE_CHANGE:
		event->port = (uint8_t)(event->raw[WORD_PORT] >> 28);
		break;
	case MLX5VFIO_EVENT_PATH_MIGRATED:
	case MLX5VFIO_EVENT_COMMUNICATION_ESTABLISHED:
	case MLX5VFIO_EVENT_SEND_QUEUE_DRAINED:
	case MLX5VFIO_EVENT_WQ_CATASTROPHIC_ERROR:
	case MLX5VFIO_EVENT_PATH_MIGRATION_FAILED:
	case MLX5VFIO_EVENT_WQ_INVALID_REQUEST_ERROR:
	case MLX5VFIO_EVENT_WQ_ACCESS_ERROR:
	case MLX5VFIO_EVENT_LAST_WQE_REACHED:
	case MLX5VFIO_EVENT_SRQ_CATASTROPHIC_ERROR:
	case MLX5VFIO_EVENT_SRQ_LIMIT:
	case MLX5VFIO_EVENT_DCT_DRAINED:
		event->qpn = event->raw[WORD_QUEUE] & NUMBER_MASK;
		break;
	default:
		break;
	}
}

static uint32_t spare(const struct ring *ring)
{
	uint32_t half = UINT32_C(1) << (ring->log_size - 1);

	return half < SPARE_ENTRIES ? half : SPARE_ENTRIES;
}

bool ring_has_next(const struct ring *ring)
{
	return is_written(ring, ring->consumer);
}

bool ring_next(struct ring *ring, struct mlx5vfio_event *event)
{
	if (!is_written(ring, ring->consumer))
		return false;
	decode(entry_at(ring, ring->consumer), event);
	ring->consumer++;
	if (ring->consumer - ring->told >= spare(ring))
		ring_update(ring);
	return true;
}

/*
 * The entry taken last, or the last of a new queue, bears the owner bit of the next way round, and
 * yet there is no next entry.
 */
bool ring_overrun(const struct ring *ring)
{
	return !is_written(ring, ring->consumer - 1) && !is_written(ring, ring->consumer);
}

/* The entry before the first that the device may write over is the last that it has room for. */
static bool is_full(const struct ring *ring)
{
	return is_written(ring, ring->told + (UINT32_C(1) << ring->log_size) - 1);
}

bool ring_was_full(struct ring *ring)
{
	bool full = ring->was_full || is_full(ring);

	ring->was_full = false;
	return full;
}

/*
 * Taken entries may be written over as soon as the doorbell is seen: no read may be left behind
 * it.
 */
static void ring_doorbell(struct ring *ring, unsigned offset)
{
	uint32_t value = (uint32_t)ring->number << 24 | (ring->consumer & COUNTER_MASK);

	if (is_full(ring))
		ring->was_full = true;
	__sync_synchronize();
	ring->uar[offset / sizeof(*ring->uar)] = htobe32(value);
	__sync_synchronize();
	ring->told = ring->consumer;
}

void ring_arm(struct ring *ring)
{
	ring_doorbell(ring, DOORBELL_ARM);
}

void ring_update(struct ring *ring)
{
	ring_doorbell(ring, DOORBELL_UPDATE);
}

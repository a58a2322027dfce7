/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command queue: doorbells, ownership, and the mailbox chains through which a command and its
 * answer travel.
 */
#include <stdlib.h>
#include <string.h>
#include "bytes.h"
#include "device.h"
#include "vfio.h"

enum {
	SLOT_SIZE = 64,
	SLOT_IN_SIZE = 4,
	SLOT_IN_POINTER = 8,
	SLOT_IN = 16,
	SLOT_OUT = 32,
	SLOT_OUT_POINTER = 48,
	SLOT_OUT_SIZE = 56,
	SLOT_STATUS = 63,
	INLINE_SIZE = 16,
	BLOCK_DATA = 512,
	BLOCK_NEXT = 560,
	BLOCK_NUMBER = 568,
	BLOCK_SIZE = 576,
	MAX_MESSAGE = 16 << 20,
	MIN_BUFFER = 8192, /* handlers need not look at sizes below this */
};

/* How a command that cannot be carried out ends, in bits 7:1 of the ownership byte. */
enum delivery {
	DELIVERY_OK = 0,
	DELIVERY_BAD_BLOCK = 3,
	DELIVERY_OUT_POINTER = 4,
	DELIVERY_IN_POINTER = 5,
	DELIVERY_IN_SIZE = 7,
	DELIVERY_OUT_SIZE = 8,
};

struct buffer {
	uint8_t *data;
	size_t room;
};

/* One command is executed at a time, whatever the device. */
static struct buffer input, output;

static bool prepare(struct buffer *buffer, size_t size)
{
	if (size < MIN_BUFFER)
		size = MIN_BUFFER;
	if (size > buffer->room) {
		free(buffer->data);
		buffer->data = malloc(size);
		buffer->room = buffer->data ? size : 0;
	}
	if (buffer->data)
		memset(buffer->data, 0, size);
	return buffer->data != NULL;
}

/* Walks a chain and copies data into it (write) or out of it. */
static enum delivery copy_chain(struct device *dev, uint64_t at, uint8_t *data, size_t size,
				bool write)
{
	for (uint32_t number = 0; size; number++) {
		size_t part = size < BLOCK_DATA ? size : BLOCK_DATA;
		uint8_t *block = iommu_memory(dev->container, at, BLOCK_SIZE);

		if (!block || at & (PAGE_SIZE - 1)) {
			violation(dev, "mailbox %u at iova 0x%llx is not mapped or not aligned",
				  number, (unsigned long long)at);
			return write ? DELIVERY_OUT_POINTER : DELIVERY_IN_POINTER;
		}
		if (get_be32(block + BLOCK_NUMBER) != number) {
			violation(dev, "mailbox has number %u, not %u",
				  get_be32(block + BLOCK_NUMBER), number);
			return DELIVERY_BAD_BLOCK;
		}
		if (write)
			memcpy(block, data, part);
		else
			memcpy(data, block, part);
		data += part;
		size -= part;
		at = get_be64(block + BLOCK_NEXT);
	}
	return DELIVERY_OK;
}

static enum delivery read_input(struct device *dev, const uint8_t *slot, size_t size)
{
	size_t head = size < INLINE_SIZE ? size : INLINE_SIZE;

	if (size < INLINE_SIZE / 2 || size > MAX_MESSAGE || !prepare(&input, size))
		return DELIVERY_IN_SIZE;
	memcpy(input.data, slot + SLOT_IN, head);
	return copy_chain(dev, get_be64(slot + SLOT_IN_POINTER), input.data + head, size - head,
			  false);
}

static enum delivery write_output(struct device *dev, uint8_t *slot, size_t size)
{
	size_t head = size < INLINE_SIZE ? size : INLINE_SIZE;

	memcpy(slot + SLOT_OUT, output.data, head);
	return copy_chain(dev, get_be64(slot + SLOT_OUT_POINTER), output.data + head, size - head,
			  true);
}

static enum delivery carry_out(struct device *dev, uint8_t *slot)
{
	size_t out_size = get_be32(slot + SLOT_OUT_SIZE);
	struct command cmd = { .dev = dev,
			       .in_size = get_be32(slot + SLOT_IN_SIZE),
			       .out_size = out_size };
	enum delivery delivery = read_input(dev, slot, cmd.in_size);

	if (delivery != DELIVERY_OK)
		return delivery;
	if (out_size < INLINE_SIZE / 2 || out_size > MAX_MESSAGE || !prepare(&output, out_size))
		return DELIVERY_OUT_SIZE;
	cmd.in = input.data;
	cmd.out = output.data;
	opcode_execute(&cmd);
	return write_output(dev, slot, out_size);
}

static void execute(struct device *dev, unsigned number, uint8_t *slot)
{
	uint8_t data[28] = { 0 };
	/* A queue that this command creates does not report it. */
	bool report = eq_for(dev, EVENT_COMMAND) != NULL;
	enum delivery delivery = carry_out(dev, slot);
	struct eq *eq;

	dev->slots[number].waiting = false;
	__atomic_store_n(slot + SLOT_STATUS, (uint8_t)(delivery << 1), __ATOMIC_RELEASE);
	eq = eq_for(dev, EVENT_COMMAND);
	if (!report || !eq)
		return;
	put_be32(data, UINT32_C(1) << number);
	eq_post(dev, eq, EVENT_COMMAND, 0, data);
}

/* The queue's memory; NULL while the program has not told where it is. */
static uint8_t *queue_memory(struct device *dev, bool rung)
{
	uint32_t low = register_read(dev, REG_CMDQ_LOW);
	uint64_t at = (uint64_t)register_read(dev, REG_CMDQ_HIGH) << 32 | (low & ~UINT32_C(0xfff));
	uint8_t *memory = iommu_memory(dev->container, at, PAGE_SIZE);

	/* A reset leaves sizes in the low bits, which the program's store of the address erases. */
	if (low & 0xff)
		memory = NULL;
	if (!memory && rung && !dev->reset_unseen)
		violation(dev, "command doorbell without a command queue");
	return memory;
}

/*
 * Slots ring one register and a store may be overwritten before we look, so any doorbell makes us
 * look at every slot. One that is owned but not rung may still be half written on a weakly ordered
 * machine: it is executed when it is still there at the next look.
 */
static bool find_commands(struct device *dev, uint8_t *queue, uint32_t rung, uint64_t now)
{
	uint32_t seen = 0;
	bool found = false;

	for (unsigned i = 0; i < COMMAND_SLOTS; i++) {
		uint8_t *slot = queue + i * SLOT_SIZE;
		uint32_t bit = UINT32_C(1) << i;

		if (dev->slots[i].waiting ||
		    !(__atomic_load_n(slot + SLOT_STATUS, __ATOMIC_ACQUIRE) & 1))
			continue;
		if (!((rung | dev->seen) & bit)) {
			seen |= bit;
			continue;
		}
		dev->slots[i] = (struct slot){ .waiting = true, .due = now + dev->faults.delay };
		found = true;
	}
	dev->seen = seen;
	dev->rescan = seen != 0;
	return found || seen;
}

bool commands_step(struct device *dev, uint64_t now, uint64_t *next)
{
	uint32_t rung = register_take(dev, REG_CMD_DOORBELL, 0);
	bool busy = false;
	uint8_t *queue;

	if (!rung && !dev->rescan && !commands_waiting(dev))
		return false;
	queue = queue_memory(dev, rung != 0);
	if (!queue)
		return false;
	if (rung || dev->rescan)
		busy = find_commands(dev, queue, rung, now);
	if (device_blocked(dev))
		return busy;
	for (unsigned i = 0; i < COMMAND_SLOTS; i++) {
		struct slot *slot = &dev->slots[i];

		if (slot->waiting && slot->due <= now) {
			execute(dev, i, queue + i * SLOT_SIZE);
			busy = true;
		} else if (slot->waiting && slot->due < *next) {
			*next = slot->due;
		}
	}
	return busy;
}

bool commands_waiting(const struct device *dev)
{
	for (unsigned i = 0; i < COMMAND_SLOTS; i++)
		if (dev->slots[i].waiting)
			return true;
	return dev->seen != 0;
}

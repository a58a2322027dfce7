/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initialization segment: what a reset leaves in it, what faults show in it, and the health
 * counter. The program's stores go to the same memory without our knowing.
 */
#include <string.h>
#include "bytes.h"
#include "clock.h"
#include "device.h"

enum {
	FW_MAJOR = 22,
	FW_MINOR = 39,
	FW_SUBMINOR = 1002,
	CMDIF_REVISION = 5,
	LOG_SLOTS_AND_STRIDE = 5 << 4 | 6,
	HARDWARE_ID = 0x212,
	NIC_STATE_SHIFT = 8,
	COUNTER_MASK = 0xffffff,
};

/* In the health buffer. */
enum {
	HEALTH_ASSERT_VARS = 5,
	HEALTH_EXIT_POINTER = 0x20,
	HEALTH_CALLRA = 0x24,
	HEALTH_FW_VERSION = 0x30,
	HEALTH_HARDWARE_ID = 0x34,
	HEALTH_RECOVERY = 0x38,
	HEALTH_IRISC = 0x3c,
	HEALTH_SIZE = 0x40,
};

#define COUNTER_PERIOD (10 * NS_PER_MS)

volatile uint32_t *register_at(struct device *dev, size_t offset)
{
	return (volatile uint32_t *)(void *)(dev->bar + offset);
}

uint32_t register_read(struct device *dev, size_t offset)
{
	return be32toh(*register_at(dev, offset));
}

void register_write(struct device *dev, size_t offset, uint32_t value)
{
	*register_at(dev, offset) = htobe32(value);
}

/* Exchanges a doorbell for empty; reads first, because most of the time there is nothing. */
uint32_t register_take(struct device *dev, size_t offset, uint32_t empty)
{
	uint32_t *at = (uint32_t *)(void *)(dev->bar + offset);
	uint32_t nothing = htobe32(empty);

	if (__atomic_load_n(at, __ATOMIC_ACQUIRE) == nothing)
		return empty;
	return be32toh(__atomic_exchange_n(at, nothing, __ATOMIC_ACQ_REL));
}

static void publish_health(struct device *dev)
{
	const struct faults *faults = &dev->faults;
	uint8_t health[HEALTH_SIZE] = { 0 };

	if (faults->syndrome) {
		for (unsigned i = 0; i < HEALTH_ASSERT_VARS; i++)
			put_be32(health + 4 * i,
				 0xa55e0000 + (uint32_t)faults->syndrome * 0x100 + i);
		put_be32(health + HEALTH_EXIT_POINTER, 0x20e5e100);
		put_be32(health + HEALTH_CALLRA, 0x20ca11a0);
		health[HEALTH_IRISC] = 1;
	}
	put_be32(health + HEALTH_FW_VERSION, FW_MINOR << 16 | FW_MAJOR);
	put_be32(health + HEALTH_HARDWARE_ID, HARDWARE_ID);
	put_be32(health + HEALTH_RECOVERY, faults->recovery ? UINT32_C(1) << 31 : 0);
	health[HEALTH_IRISC + 1] = faults->syndrome;
	put_be16(health + HEALTH_IRISC + 2, faults->extended);
	memcpy(dev->bar + REG_HEALTH, health, sizeof(health));
}

/* Puts the NIC interface state where the program may have written its own. */
static void publish_nic(struct device *dev, enum nic_state state)
{
	uint32_t low = register_read(dev, REG_CMDQ_LOW) & ~(UINT32_C(7) << NIC_STATE_SHIFT);

	register_write(dev, REG_CMDQ_LOW, low | (uint32_t)state << NIC_STATE_SHIFT);
}

static void fill_with_ones(struct device *dev)
{
	memset(dev->bar, 0xff, REGISTERS_SIZE);
	for (unsigned i = 0; i < dev->uar_count; i++)
		memset(dev->bar + dev->uars[i] * PAGE_SIZE, 0xff, PAGE_SIZE);
}

static void hide(struct device *dev)
{
	memcpy(dev->saved, dev->bar, sizeof(dev->saved));
	dev->hidden = true;
	dev->hidden_until = 0;
	fill_with_ones(dev);
}

static void unhide(struct device *dev)
{
	memcpy(dev->bar, dev->saved, sizeof(dev->saved));
	dev->hidden = false;
	register_write(dev, REG_CMD_DOORBELL, 0);
	for (unsigned i = 0; i < dev->uar_count; i++)
		uar_clear_doorbells(dev, dev->uars[i]);
}

void registers_hide_until(struct device *dev, uint64_t until)
{
	hide(dev);
	dev->hidden_until = until;
}

void registers_publish(struct device *dev)
{
	bool was_down;

	if (!dev->open)
		return;
	if (dev->hidden)
		unhide(dev);
	publish_health(dev);
	was_down = register_read(dev, REG_CMDQ_LOW) >> NIC_STATE_SHIFT & 7;
	if (dev->faults.nic != NIC_FULL || was_down)
		publish_nic(dev, dev->faults.nic);
	register_write(dev, REG_INITIALIZING, dev->faults.init_stuck ? UINT32_C(1) << 31 : 0);
	if (dev->faults.offline)
		hide(dev);
}

void registers_reset(struct device *dev)
{
	memset(dev->bar, 0, REGISTERS_SIZE);
	dev->hidden = false;
	register_write(dev, REG_FW_REV, FW_MINOR << 16 | FW_MAJOR);
	register_write(dev, REG_CMDIF_REV, CMDIF_REVISION << 16 | FW_SUBMINOR);
	register_write(dev, REG_CMDQ_LOW, LOG_SLOTS_AND_STRIDE);
	register_write(dev, REG_COUNTER, dev->counter);
	dev->counter_due = clock_now() + COUNTER_PERIOD;
	registers_publish(dev);
}

static bool all_ones(const uint8_t *at, size_t size)
{
	static const uint8_t ones[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	for (size_t i = 0; i < size; i += sizeof(ones))
		if (memcmp(at + i, ones, sizeof(ones)))
			return false;
	return true;
}

/* A dead device forgets what is written to it. */
static bool keep_hidden(struct device *dev)
{
	bool clean = all_ones(dev->bar, REGISTERS_SIZE);

	for (unsigned i = 0; clean && i < dev->uar_count; i++)
		clean = all_ones(dev->bar + dev->uars[i] * PAGE_SIZE, PAGE_SIZE);
	if (!clean)
		fill_with_ones(dev);
	return !clean;
}

bool registers_step(struct device *dev, uint64_t now)
{
	if (dev->hidden && dev->hidden_until && now >= dev->hidden_until)
		unhide(dev);
	if (dev->hidden)
		return keep_hidden(dev);
	if (dev->faults.frozen) {
		dev->counter_due = now + COUNTER_PERIOD;
		return false;
	}
	if (now < dev->counter_due)
		return false;
	/* After a long sleep of the whole process the counter has gone on as well. */
	dev->counter += (uint32_t)((now - dev->counter_due) / COUNTER_PERIOD) + 1;
	dev->counter &= COUNTER_MASK;
	dev->counter_due += ((now - dev->counter_due) / COUNTER_PERIOD + 1) * COUNTER_PERIOD;
	register_write(dev, REG_COUNTER, dev->counter);
	return false;
}

bool device_blocked(const struct device *dev)
{
	return dev->faults.hung || dev->faults.offline || dev->faults.nic != NIC_FULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues: entries, consumer doorbells, arming, interrupts. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bytes.h"
#include "clock.h"
#include "device.h"
#include "opcode.h"
#include "vfio.h"

enum {
	EQE_SIZE = 64,
	EQE_TYPE = 1,
	EQE_SUB_TYPE = 3,
	EQE_DATA = 32,
	EQE_DATA_SIZE = 28,
	EQE_OWNER = 63,
	COUNTER_MASK = 0xffffff,
	COUNTER_HALF = 0x800000,
	MAX_LOG_ENTRIES = 20,
	OVERRUN_EXTRA = 8,
	MAX_RESCUE_SHIFT = 5,
	SYNDROME_EQ_OVERRUN = 0x0c,
};

/* In CREATE_EQ and in the answer to QUERY_EQ. */
enum {
	IN_CONTEXT = 0x10,
	IN_EVENTS = 0x58,
	IN_PAGES = 0x110,
	CONTEXT_STATUS = 0x00, /* bits 7:4 */
	CONTEXT_STATE = 0x02,  /* bits 3:0 */
	CONTEXT_SIZES = 0x0c,  /* 3 bits reserved, 5 log of entries, 24 UAR page */
	CONTEXT_VECTOR = 0x17,
	CONTEXT_PAGE_SIZE = 0x18,
	CONTEXT_CONSUMER = 0x28,
	CONTEXT_PRODUCER = 0x2c,
	CONTEXT_WRITE_FAILURE = 0xa,
	CONTEXT_ARMED = 0x9,
	CONTEXT_FIRED = 0xa,
};

/* Nobody writes EQ number 255: so the same value rung twice is seen twice. */
#define DOORBELL_EMPTY UINT32_C(0xff000000)

/* A wait long enough for a busy program, short enough to go unnoticed. */
#define RESCUE_AFTER (5 * NS_PER_MS)

static bool uar_exists(const struct device *dev, uint32_t uar)
{
	for (unsigned i = 0; i < dev->uar_count; i++)
		if (dev->uars[i] == uar)
			return true;
	return false;
}

void uar_clear_doorbells(struct device *dev, uint32_t uar)
{
	register_write(dev, uar * PAGE_SIZE + UAR_EQ_ARM, DOORBELL_EMPTY);
	register_write(dev, uar * PAGE_SIZE + UAR_EQ_UPDATE, DOORBELL_EMPTY);
}

void uar_add(struct device *dev, uint32_t uar)
{
	dev->uars[dev->uar_count++] = uar;
	uar_clear_doorbells(dev, uar);
}

bool uar_remove(struct device *dev, uint32_t uar)
{
	for (unsigned i = 0; i < dev->uar_count; i++) {
		if (dev->uars[i] != uar)
			continue;
		dev->uars[i] = dev->uars[--dev->uar_count];
		return true;
	}
	return false;
}

static uint8_t free_number(const struct device *dev)
{
	for (unsigned i = 1; i < MAX_EQS; i++)
		if (!dev->eqs[i])
			return (uint8_t)i;
	return 0;
}

static uint8_t check_create(const struct device *dev, const struct command *cmd, size_t pages)
{
	const uint8_t *context = cmd->in + IN_CONTEXT;

	if (cmd->in_size < IN_PAGES + pages * sizeof(uint64_t))
		return STATUS_BAD_INPUT_SIZE;
	if (context[CONTEXT_VECTOR] >= MSIX_VECTORS)
		return STATUS_BAD_PARAM;
	return uar_exists(dev, get_be24(context + CONTEXT_SIZES + 1)) ? STATUS_OK
								      : STATUS_BAD_RESOURCE;
}

struct eq *eq_create(struct device *dev, const struct command *cmd, uint8_t *status)
{
	const uint8_t *context = cmd->in + IN_CONTEXT;
	unsigned log_entries = context[CONTEXT_SIZES] & 0x1f;
	unsigned shift = (context[CONTEXT_PAGE_SIZE] & 0x1f) + 12u;
	uint8_t number = free_number(dev);
	struct eq *eq = NULL;
	size_t pages;

	if (log_entries > MAX_LOG_ENTRIES) {
		*status = STATUS_BAD_PARAM;
		return NULL;
	}
	pages = (((size_t)EQE_SIZE << log_entries) + ((size_t)1 << shift) - 1) >> shift;
	*status = check_create(dev, cmd, pages);
	if (*status != STATUS_OK)
		return NULL;
	if (number)
		eq = calloc(1, sizeof(*eq) + pages * sizeof(eq->pages[0]));
	if (!eq) {
		*status = STATUS_NO_RESOURCES;
		return NULL;
	}
	eq->number = number;
	eq->vector = context[CONTEXT_VECTOR];
	eq->uar = get_be24(context + CONTEXT_SIZES + 1);
	eq->entries = UINT32_C(1) << log_entries;
	eq->page_shift = shift;
	eq->events = get_be64(cmd->in + IN_EVENTS);
	for (size_t i = 0; i < pages; i++)
		eq->pages[i] = get_be64(cmd->in + IN_PAGES + i * sizeof(uint64_t));
	dev->eqs[number] = eq;
	return eq;
}

void eq_destroy(struct device *dev, struct eq *eq)
{
	/* The last doorbell was rung before the command. */
	eq_doorbells(dev, clock_now());
	event_jobs_forget(dev, eq);
	cqs_lose_queue(dev, eq);
	for (unsigned i = 1; i < MAX_EQS; i++)
		if (dev->eqs[i] && dev->eqs[i]->uar == eq->uar)
			dev->eqs[i]->arm_doubtful = true;
	dev->eqs[eq->number] = NULL;
	free(eq);
}

static uint8_t log2_of(uint32_t entries)
{
	uint8_t log = 0;

	while (entries >>= 1)
		log++;
	return log;
}

void eq_query(struct device *dev, const struct eq *eq, uint8_t *out)
{
	uint8_t *context = out + IN_CONTEXT; /* in the answer it has the same place */

	eq_doorbells(dev, clock_now());
	context[CONTEXT_STATUS] = eq->broken ? CONTEXT_WRITE_FAILURE << 4 : 0;
	context[CONTEXT_STATE] = eq->armed ? CONTEXT_ARMED : CONTEXT_FIRED;
	put_be32(context + CONTEXT_SIZES, (uint32_t)log2_of(eq->entries) << 24 | eq->uar);
	context[CONTEXT_VECTOR] = (uint8_t)eq->vector;
	context[CONTEXT_PAGE_SIZE] = (uint8_t)(eq->page_shift - 12);
	put_be32(context + CONTEXT_CONSUMER, eq->consumer & COUNTER_MASK);
	put_be32(context + CONTEXT_PRODUCER, eq->producer & COUNTER_MASK);
	put_be64(out + IN_EVENTS, eq->events);
}

void eq_doubt_arms(struct device *dev)
{
	for (unsigned i = 1; i < MAX_EQS; i++)
		if (dev->eqs[i])
			dev->eqs[i]->arm_doubtful = true;
}

struct eq *eq_for(struct device *dev, enum event_type type)
{
	for (unsigned i = 1; i < MAX_EQS; i++)
		if (dev->eqs[i] && dev->eqs[i]->events >> type & 1)
			return dev->eqs[i];
	return NULL;
}

uint32_t eq_backlog(const struct eq *eq)
{
	return eq->producer - eq->consumer;
}

void interrupt_raise(struct device *dev, unsigned vector)
{
	uint64_t one = 1;

	if (dev->faults.lose_interrupts) {
		dev->faults.lose_interrupts--;
		return;
	}
	if (dev->msix[vector] < 0)
		return;
	dev->stats.interrupts++;
	if (write(dev->msix[vector], &one, sizeof(one)) < 0)
		return; /* a full eventfd is readable already */
}

static void interrupt_if_armed(struct device *dev, struct eq *eq)
{
	if (!eq->armed || eq->broken || !eq_backlog(eq))
		return;
	eq->armed = false;
	interrupt_raise(dev, eq->vector);
}

static uint8_t *entry_memory(struct device *dev, const struct eq *eq)
{
	uint64_t offset = (uint64_t)(eq->producer & (eq->entries - 1)) * EQE_SIZE;
	uint64_t in_page = offset & ((UINT64_C(1) << eq->page_shift) - 1);
	uint64_t at = eq->pages[offset >> eq->page_shift] + in_page;
	uint8_t *entry = iommu_memory(dev->container, at, EQE_SIZE);

	if (!entry)
		violation(dev, "event queue %u lies in memory that is not mapped", eq->number);
	return entry;
}

static void write_entry(struct device *dev, struct eq *eq, enum event_type type, uint8_t sub_type,
			const uint8_t *data)
{
	uint8_t *entry = entry_memory(dev, eq);

	if (!entry)
		return;
	memset(entry, 0, EQE_OWNER);
	entry[EQE_TYPE] = (uint8_t)type;
	entry[EQE_SUB_TYPE] = sub_type;
	memcpy(entry + EQE_DATA, data, EQE_DATA_SIZE);
	__atomic_store_n(entry + EQE_OWNER, (uint8_t)(eq->producer / eq->entries & 1),
			 __ATOMIC_RELEASE);
	eq->producer++;
	dev->stats.eqes++;
}

/* A queue that was overrun is dead, as a real one is. */
static void declare_overrun(struct device *dev, struct eq *eq)
{
	eq->broken = true;
	violation(dev, "event queue %u was overrun", eq->number);
	dev->faults.syndrome = SYNDROME_EQ_OVERRUN;
	dev->faults.extended = 0;
	dev->faults.recovery = false;
	registers_publish(dev);
}

void eq_post(struct device *dev, struct eq *eq, enum event_type type, uint8_t sub_type,
	     const uint8_t data[28])
{
	if (eq->broken)
		return;
	if (eq_backlog(eq) >= eq->entries && !eq->uncertain) {
		declare_overrun(dev, eq);
		return;
	}
	write_entry(dev, eq, type, sub_type, data);
	eq->quiet_since = clock_now();
	interrupt_if_armed(dev, eq);
}

void eq_overrun(struct device *dev, struct eq *eq)
{
	static const uint8_t nothing[EQE_DATA_SIZE];
	uint32_t missing = eq->entries - eq_backlog(eq) + OVERRUN_EXTRA;

	while (missing--)
		write_entry(dev, eq, EVENT_PORT, 0, nothing);
	interrupt_if_armed(dev, eq);
	declare_overrun(dev, eq);
}

/* An update may be older than the arm that was read before it: going back is no fault there. */
static bool consume(struct device *dev, struct eq *eq, uint32_t counter, bool arm)
{
	uint32_t ahead = (counter - eq->consumer) & COUNTER_MASK;

	if (ahead >= COUNTER_HALF && !arm)
		return false;
	if (ahead > eq_backlog(eq)) {
		violation(dev, "event queue %u: consumer index 0x%x, but only %u entries are there",
			  eq->number, counter, eq_backlog(eq));
		return false;
	}
	eq->consumer += ahead;
	dev->stats.consumed += ahead;
	return ahead != 0;
}

/* What was seen may have overwritten the doorbell of any other queue on the page. */
static void note_doorbell(struct device *dev, struct eq *eq)
{
	for (unsigned i = 1; i < MAX_EQS; i++)
		if (dev->eqs[i] && dev->eqs[i]->uar == eq->uar)
			dev->eqs[i]->uncertain = dev->eqs[i] != eq;
}

static bool shares_doorbell(const struct device *dev, const struct eq *eq)
{
	for (unsigned i = 1; i < MAX_EQS; i++)
		if (dev->eqs[i] && dev->eqs[i] != eq && dev->eqs[i]->uar == eq->uar)
			return true;
	return false;
}

static bool take_doorbell(struct device *dev, size_t offset, bool arm, uint64_t now)
{
	uint32_t value = register_take(dev, offset, DOORBELL_EMPTY);
	struct eq *eq;
	bool news;

	if (value == DOORBELL_EMPTY)
		return false;
	eq = value >> 24 < MAX_EQS ? dev->eqs[value >> 24] : NULL;
	if (!eq) {
		violation(dev, "doorbell for event queue %u, which does not exist", value >> 24);
		return false;
	}
	note_doorbell(dev, eq);
	news = consume(dev, eq, value & COUNTER_MASK, arm);
	if (arm)
		eq->arm_doubtful = shares_doorbell(dev, eq);
	if (arm && !eq->armed) {
		eq->armed = true;
		news = true;
	}
	if (news) {
		eq->quiet_since = now;
		eq->rescues = 0;
	}
	interrupt_if_armed(dev, eq);
	return news;
}

static bool doorbells(struct device *dev, uint64_t now)
{
	bool news = false;

	for (unsigned i = 0; i < dev->uar_count; i++) {
		size_t page = (size_t)dev->uars[i] * PAGE_SIZE;

		news |= take_doorbell(dev, page + UAR_EQ_UPDATE, false, now);
		news |= take_doorbell(dev, page + UAR_EQ_ARM, true, now);
	}
	return news;
}

void eq_doorbells(struct device *dev, uint64_t now)
{
	doorbells(dev, now);
}

/*
 * Two queues on one page write one register, and in plain memory one arm can overwrite the other. A
 * queue that stays unarmed with entries in it gets one interrupt that nobody asked for; the program
 * finds its entries and arms again. That arm may be lost as well: again, but ever more rarely,
 * because a program that does not look at its queue is not to be disturbed. A queue that has been
 * overrun since would have interrupted at its first entry.
 */
static void rescue_lost_arm(struct device *dev, struct eq *eq, uint64_t now)
{
	if (eq->armed || !eq_backlog(eq) || !(eq->arm_doubtful || shares_doorbell(dev, eq)))
		return;
	if (eq->rescued_at != eq->producer)
		eq->rescues = 0;
	if (now - eq->quiet_since < RESCUE_AFTER << eq->rescues)
		return;
	eq->rescued_at = eq->producer;
	eq->quiet_since = now;
	if (eq->rescues < MAX_RESCUE_SHIFT)
		eq->rescues++;
	interrupt_raise(dev, eq->vector);
}

bool eqs_step(struct device *dev, uint64_t now)
{
	bool news = doorbells(dev, now);

	for (unsigned i = 1; i < MAX_EQS; i++)
		if (dev->eqs[i])
			rescue_lost_arm(dev, dev->eqs[i], now);
	return news;
}

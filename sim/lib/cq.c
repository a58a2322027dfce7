/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: which event queue each reports to. */
#include <stdlib.h>
#include <string.h>
#include "bytes.h"
#include "device.h"
#include "opcode.h"

enum {
	AT_NUMBER = 9,
	AT_EQ_NUMBER = 0x10 + 0x17, /* c_eqn in the CQ context */
	FIRST_ROOM = 64,
};

static bool make_room(struct cq_table *table, uint32_t number)
{
	uint32_t room = table->room ? table->room : FIRST_ROOM;
	uint8_t *queues;

	while (room <= number)
		room *= 2;
	if (room == table->room)
		return true;
	queues = realloc(table->queues, room);
	if (!queues)
		return false;
	memset(queues + table->room, 0, room - table->room);
	table->queues = queues;
	table->room = room;
	return true;
}

/* A number of 0 is accepted, as firmware does: such a CQ reports to nobody. */
uint8_t cq_create(struct command *cmd)
{
	struct device *dev = cmd->dev;
	uint8_t queue = cmd->in[AT_EQ_NUMBER];
	uint32_t number;

	if (queue && (queue >= MAX_EQS || !dev->eqs[queue]))
		return STATUS_BAD_RESOURCE;
	number = idset_take(&dev->cqs);
	if (!number || !make_room(&dev->cq_table, number))
		return STATUS_NO_RESOURCES;
	dev->cq_table.queues[number] = queue;
	put_be24(cmd->out + AT_NUMBER, number);
	return STATUS_OK;
}

uint8_t cq_destroy(struct command *cmd)
{
	uint32_t number = get_be24(cmd->in + AT_NUMBER);

	if (!idset_give(&cmd->dev->cqs, number)) {
		violation(cmd->dev, "completion queue %u does not exist", number);
		return STATUS_BAD_RESOURCE;
	}
	cmd->dev->cq_table.queues[number] = 0;
	return STATUS_OK;
}

struct eq *cq_reports_to(const struct device *dev, uint32_t number)
{
	return number < dev->cq_table.room ? dev->eqs[dev->cq_table.queues[number]] : NULL;
}

void cqs_lose_queue(struct device *dev, const struct eq *eq)
{
	struct cq_table *table = &dev->cq_table;
	unsigned orphans = 0;

	for (uint32_t i = 0; i < table->room; i++) {
		if (table->queues[i] != eq->number)
			continue;
		table->queues[i] = 0;
		orphans++;
	}
	if (orphans)
		violation(dev, "event queue %u is destroyed before %u completion queues on it",
			  eq->number, orphans);
}

void cqs_forget(struct device *dev)
{
	free(dev->cq_table.queues);
	dev->cq_table = (struct cq_table){ 0 };
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory pages that the host lends to the firmware. */
#include "bytes.h"
#include "device.h"
#include "opcode.h"
#include "vfio.h"

enum {
	OP_CANNOT_GIVE = 0,
	OP_GIVE = 1,
	OP_TAKE = 2,
	QUERY_BOOT = 1,
	QUERY_INIT = 2,
	AT_MODIFIER = 6,
	AT_COUNT = 12,
	AT_OUT_COUNT = 8,
	AT_PAGES = 16,
};

uint8_t pages_query(struct command *cmd)
{
	uint16_t which = get_be16(cmd->in + AT_MODIFIER);
	uint32_t pages = 0;

	if (which == QUERY_BOOT)
		pages = BOOT_PAGES;
	else if (which == QUERY_INIT)
		pages = INIT_PAGES;
	put_be32(cmd->out + AT_COUNT, pages);
	return STATUS_OK;
}

static bool accept_page(struct device *dev, struct pageset *set, uint64_t page)
{
	struct dma_map *map = iommu_find(dev->container, page);

	if (page & (PAGE_SIZE - 1) || !map) {
		violation(dev, "given page 0x%llx is not mapped or not aligned",
			  (unsigned long long)page);
		return false;
	}
	if (pageset_has(&dev->startup, page) || pageset_has(&dev->given, page)) {
		violation(dev, "page 0x%llx is given twice", (unsigned long long)page);
		return false;
	}
	if (!pageset_add(set, page))
		return false;
	map->pages_held++;
	return true;
}

static uint8_t give(struct command *cmd)
{
	struct device *dev = cmd->dev;
	uint32_t count = get_be32(cmd->in + AT_COUNT);
	struct pageset *set = dev->active ? &dev->given : &dev->startup;

	if ((cmd->in_size - AT_PAGES) / sizeof(uint64_t) < count)
		return STATUS_BAD_INPUT_SIZE;
	for (uint32_t i = 0; i < count; i++) {
		if (!accept_page(dev, set, get_be64(cmd->in + AT_PAGES + 8 * (size_t)i)))
			return STATUS_BAD_PARAM;
		if (dev->active)
			dev->stats.pages_given++;
		else
			dev->stats.pages_startup++;
	}
	return STATUS_OK;
}

/* xorshift64: the same seed takes back the same pages. */
static uint64_t next_random(struct device *dev)
{
	dev->random ^= dev->random << 13;
	dev->random ^= dev->random >> 7;
	dev->random ^= dev->random << 17;
	return dev->random;
}

static uint8_t take(struct command *cmd)
{
	struct device *dev = cmd->dev;
	struct pageset *set = &dev->given;
	uint32_t wanted = get_be32(cmd->in + AT_COUNT), taken = 0;
	size_t room = cmd->out_size > AT_PAGES ? (cmd->out_size - AT_PAGES) / sizeof(uint64_t) : 0;

	while (taken < wanted && taken < room && set->count) {
		uint64_t page = pageset_take(set, next_random(dev) % set->count);
		struct dma_map *map = iommu_find(dev->container, page);

		if (map)
			map->pages_held--;
		put_be64(cmd->out + AT_PAGES + 8 * (size_t)taken++, page);
	}
	put_be32(cmd->out + AT_OUT_COUNT, taken);
	dev->stats.pages_returned += taken;
	return STATUS_OK;
}

uint8_t pages_manage(struct command *cmd)
{
	switch (get_be16(cmd->in + AT_MODIFIER)) {
	case OP_CANNOT_GIVE:
		return STATUS_OK;
	case OP_GIVE:
		return cmd->in_size < AT_PAGES ? STATUS_BAD_INPUT_SIZE : give(cmd);
	case OP_TAKE:
		return take(cmd);
	default:
		return STATUS_BAD_PARAM;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Object numbers: a bitmap that grows. */
#include <stdlib.h>
#include <string.h>
#include "idset.h"

enum {
	FIRST_ROOM = 256,
	MAX_ROOM = 1 << 22,
};

static bool in_use(const struct idset *set, uint32_t id)
{
	return set->bits[id / 64] >> (id % 64) & 1;
}

static bool grow(struct idset *set)
{
	size_t room = set->room ? (size_t)set->room * 2 : FIRST_ROOM;
	uint64_t *bits;

	if (room < FIRST_ROOM || room > MAX_ROOM)
		return false;
	bits = realloc(set->bits, room / 8);
	if (!bits)
		return false;
	memset((uint8_t *)bits + set->room / 8, 0, (room - set->room) / 8);
	set->bits = bits;
	set->next = set->room ? set->room : 1;
	set->room = (uint32_t)room;
	return true;
}

uint32_t idset_take(struct idset *set)
{
	uint32_t id = set->next;

	for (uint32_t tried = 0; tried < set->room; tried++, id++) {
		if (id >= set->room)
			id = 1;
		if (in_use(set, id))
			continue;
		set->bits[id / 64] |= UINT64_C(1) << (id % 64);
		set->next = id + 1;
		return id;
	}
	return grow(set) ? idset_take(set) : 0;
}

bool idset_has(const struct idset *set, uint32_t id)
{
	return id && id < set->room && in_use(set, id);
}

bool idset_give(struct idset *set, uint32_t id)
{
	if (!idset_has(set, id))
		return false;
	set->bits[id / 64] &= ~(UINT64_C(1) << (id % 64));
	return true;
}

void idset_clear(struct idset *set)
{
	free(set->bits);
	*set = (struct idset){ 0 };
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of pages with an open-addressing hash index over it. */
#include <stdlib.h>
#include "pageset.h"

enum {
	FIRST_ROOM = 512,
};

static size_t first_bucket(const struct pageset *set, uint64_t page)
{
	return (size_t)((page >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (set->buckets - 1);
}

/* The bucket that holds page, or the empty one where the search for it ends. */
static size_t bucket_of(const struct pageset *set, uint64_t page)
{
	size_t at = first_bucket(set, page);

	while (set->index[at] && set->pages[set->index[at] - 1] != page)
		at = (at + 1) & (set->buckets - 1);
	return at;
}

bool pageset_has(const struct pageset *set, uint64_t page)
{
	return set->count && set->index[bucket_of(set, page)];
}

static bool grow(struct pageset *set)
{
	size_t room = set->room ? set->room * 2 : FIRST_ROOM;
	uint32_t *index = calloc(room * 2, sizeof(*index));
	uint64_t *pages = realloc(set->pages, room * sizeof(*pages));

	if (pages)
		set->pages = pages;
	if (!index || !pages) {
		free(index);
		return false;
	}
	free(set->index);
	set->index = index;
	set->buckets = room * 2;
	set->room = room;
	for (size_t i = 0; i < set->count; i++)
		index[bucket_of(set, pages[i])] = (uint32_t)i + 1;
	return true;
}

bool pageset_add(struct pageset *set, uint64_t page)
{
	if (set->count == set->room && !grow(set))
		return false;
	set->pages[set->count++] = page;
	set->index[bucket_of(set, page)] = (uint32_t)set->count;
	return true;
}

/* Empties a bucket and moves up what was displaced by it. */
static void remove_bucket(struct pageset *set, size_t hole)
{
	size_t mask = set->buckets - 1, at = hole;

	set->index[hole] = 0;
	for (;;) {
		size_t home;

		at = (at + 1) & mask;
		if (!set->index[at])
			return;
		home = first_bucket(set, set->pages[set->index[at] - 1]);
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		set->index[hole] = set->index[at];
		set->index[at] = 0;
		hole = at;
	}
}

uint64_t pageset_take(struct pageset *set, size_t place)
{
	uint64_t page = set->pages[place], last = set->pages[set->count - 1];

	remove_bucket(set, bucket_of(set, page));
	if (last != page) {
		set->index[bucket_of(set, last)] = (uint32_t)place + 1;
		set->pages[place] = last;
	}
	set->count--;
	return page;
}

void pageset_clear(struct pageset *set)
{
	free(set->pages);
	free(set->index);
	*set = (struct pageset){ 0 };
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The pages that firmware holds: a set of addresses from which any one can be picked by place. */
#ifndef SIM_PAGESET_H
#define SIM_PAGESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pageset {
	uint64_t *pages;
	size_t count, room;
	uint32_t *index; /* hash table: place + 1 in pages, 0 for empty */
	size_t buckets;  /* a power of two, at least twice the count */
};

bool pageset_has(const struct pageset *set, uint64_t page);
bool pageset_add(struct pageset *set, uint64_t page);

/* Takes out the page at place and moves the last one there. */
uint64_t pageset_take(struct pageset *set, size_t place);
void pageset_clear(struct pageset *set);

#endif

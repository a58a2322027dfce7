/* SPDX-License-Identifier: BSD-2-Clause */
/* Object numbers that a device hands out. */
#ifndef SIM_IDSET_H
#define SIM_IDSET_H

#include <stdbool.h>
#include <stdint.h>

struct idset {
	uint64_t *bits;
	uint32_t room; /* in numbers */
	uint32_t next; /* where the search starts: a freed number is not reused at once */
};

/* Returns a number of 1 or more, or 0 when there is none. */
uint32_t idset_take(struct idset *set);
bool idset_has(const struct idset *set, uint32_t id);
bool idset_give(struct idset *set, uint32_t id);
void idset_clear(struct idset *set);

#endif

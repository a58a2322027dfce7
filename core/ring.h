/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory side of an event queue: entries that the device writes, doorbells that we ring. */
#ifndef CORE_RING_H
#define CORE_RING_H

#include <mlx5vfio/eq.h>

struct ring {
	uint8_t *entries;
	unsigned log_size;
	uint8_t number;         /* of the queue, in its doorbells */
	uint32_t consumer;      /* entries taken since the queue was created */
	uint32_t told;          /* of these, those that the device knows of */
	bool was_full;          /* since somebody asked: the device may have had no room */
	volatile uint32_t *uar; /* the page that its doorbells are in */
};

/* Marks all entries as not yet written, but for those that the device was quick to write. */
void ring_init(struct ring *ring, uint64_t events);

bool ring_has_next(const struct ring *ring);

/* Takes the next entry. False if there is none. */
bool ring_next(struct ring *ring, struct mlx5vfio_event *event);

/* Has the device come round and written over what was not taken? */
bool ring_overrun(const struct ring *ring);

/*
 * Has the device written all the entries that it had room for since this was last asked? If so the
 * next one may have found no room.
 */
bool ring_was_full(struct ring *ring);

/* Tells the device what was taken, and asks for an interrupt when there is, or already is, more. */
void ring_arm(struct ring *ring);

/* Tells the device what was taken, so that it has room, and asks for nothing. */
void ring_update(struct ring *ring);

#endif

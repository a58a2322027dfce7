/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When will libmlx5 check health? It does so in mlx5dv_vfio_process_events() when its wall clock
 * is 1000 ms or more past its last check, or before it. That last time cannot be seen. A throttle
 * keeps the set of values that it can have, in wall-clock milliseconds, and answers from it.
 */
#ifndef CORE_THROTTLE_H
#define CORE_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#define THROTTLE_SPANS 8

struct throttle_span {
	uint64_t from, to; /* both included */
};

/* Spans are ascending and apart. More than fit are joined: a larger set only costs samples. */
struct throttle {
	struct throttle_span spans[THROTTLE_SPANS];
	unsigned count;
	uint64_t margin; /* libmlx5 reads the clock after us, by so much at most */
};

/*
 * Preempted between the two readings, a thread waits for as long as others have the core. How long
 * that is shows in the calls: the margin follows the longest, and falls back by and by.
 */
#define THROTTLE_MARGIN_MS     10
#define THROTTLE_MARGIN_MAX_MS 100

/* A call that the set was not told of took so long. */
void throttle_held_up(struct throttle *throttle, uint64_t took);

/* A second has passed. */
void throttle_relax(struct throttle *throttle);

/* Nothing is known: somebody may have called libmlx5 before. */
void throttle_init_unknown(struct throttle *throttle);

/* The device was opened and never processed: libmlx5's last check is at time 0. */
void throttle_init_fresh(struct throttle *throttle);

/* Might a call that starts at wall time now check? */
bool throttle_may_check(const struct throttle *throttle, uint64_t now);

/*
 * Is it certain that no call that starts at now, and reads the clock within the next slack milliseconds,
 * checks? Mostly it is, and this is quick to say.
 */
bool throttle_is_far(const struct throttle *throttle, uint64_t now, uint64_t slack);

/* A call was made between the readings before and after. True if it may have checked. */
bool throttle_called(struct throttle *throttle, uint64_t before, uint64_t after);

/*
 * How many milliseconds, up to 1000, should a call that might check wait so that one check stands
 * for all that become possible within horizon milliseconds? 0 if waiting gains nothing.
 */
uint64_t throttle_gain(const struct throttle *throttle, uint64_t now, uint64_t horizon);

#endif

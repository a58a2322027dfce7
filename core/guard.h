/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guard: libmlx5 abort()s the process when it finds a device dead, so it never gets to look at
 * one that we have not found alive just before.
 */
#ifndef CORE_GUARD_H
#define CORE_GUARD_H

#include "registers.h"
#include "throttle.h"

struct guard {
	bar_t bar; /* NULL: the registers were not found, nothing is guarded */
	bool on;
	struct throttle throttle;

	uint32_t queue_page;          /* at the start; 0: not known */
	struct mlx5vfio_health known; /* what stays of the device when it is off the bus */

	struct registers_sample last; /* the newest sample */
	int64_t moved_at;             /* when the counter was first seen at its present value */

	/*
	 * How often in a row libmlx5 may have seen the counter unmoved; it aborts at the third
	 * time.
	 */
	unsigned misses;
	uint32_t counter_after; /* read after libmlx5's last possible check */

	unsigned credit; /* looks that may be taken before a call is put off instead */
	int64_t credit_at;
	bool waited; /* the call was put off once: now it is made */

	uint64_t call_from;       /* wall clock before the call that is being made */
	bool looked;              /* the registers were read for that call */
	bool far;                 /* no check was near at call_from, nor is before the next tick */
	struct timespec far_tick; /* the coarse clock then */
	unsigned believed;        /* calls for which the coarse clock is still believed */

	uint64_t samples;
};

enum guard_verdict {
	GUARD_CALL,  /* call libmlx5, then guard_after_call() */
	GUARD_WAIT,  /* not now: *wait_ms later */
	GUARD_FAULT, /* never again: *fault */
};

/* Starts guarding the device behind bar, which may be NULL. fresh: libmlx5 has never checked it. */
void guard_init(struct guard *guard, bar_t bar, bool fresh);

/* Off, on, and on again: what libmlx5 did meanwhile is not known. */
void guard_switch(struct guard *guard, bool on);

bool guard_active(const struct guard *guard);

/* Reads the registers and judges them. */
enum mlx5vfio_fault guard_look(struct guard *guard);

/* Milliseconds since the counter was seen to move. */
uint32_t guard_unmoved_ms(const struct guard *guard);

/*
 * May libmlx5 be called? looked: guard_look() has just found the device alive. A call that need
 * not be guarded (off, or nothing found) always may.
 */
enum guard_verdict guard_before_call(struct guard *guard, bool looked, int *wait_ms,
				     enum mlx5vfio_fault *fault);

/*
 * The short answer that mostly does: no check is near, libmlx5 may be called. Like a verdict of
 * GUARD_CALL it is for one call. False says nothing: ask guard_before_call().
 */
bool guard_is_far(struct guard *guard);

void guard_after_call(struct guard *guard);

#endif

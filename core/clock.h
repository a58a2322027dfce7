/* SPDX-License-Identifier: BSD-2-Clause */
/* The two clocks, in milliseconds. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

/*
 * CLOCK_MONOTONIC: ticks, retries and stalls are measured by it; wall-clock steps do not touch it.
 */
int64_t clock_ms(void);

/* The wall clock as libmlx5 reads it, with gettimeofday(). */
uint64_t clock_wall_ms(void);

/*
 * The same clock as it was at the kernel's last timer tick, milliseconds ago, for a fifth of the price:
 * it stands still between two ticks.
 */
void clock_wall_tick(struct timespec *now);

#endif

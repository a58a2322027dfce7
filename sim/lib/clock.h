/* SPDX-License-Identifier: BSD-2-Clause */
/* Time: the engine's own monotonic clock, and the wall clock that the program sees. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

uint64_t clock_now(void);

/* Both are called with the engine's lock held. */
void clock_step_wall(int64_t ms);
void clock_rate_wall(double factor);

/* hook_sleep.c: the program's sleeps take 1/factor of the time. Needs no lock. */
void sleep_rate(double factor);

#endif

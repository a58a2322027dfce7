/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

#include "clock.h"

int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint64_t clock_wall_ms(void)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

void clock_wall_tick(struct timespec *now)
{
	clock_gettime(CLOCK_REALTIME_COARSE, now);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The one clock that ticks and retries are measured by; wall-clock steps do not touch it. */
#include <time.h>

#include "device.h"

int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

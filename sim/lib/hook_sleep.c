/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's sleeps, which can be made short: libmlx5 waits 60,000 times 2 ms for firmware that
 * does not start.
 */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>
#include "clock.h"
#include "real.h"

/* Below the slack of a timer a sleep is longer than asked for; giving the core away is enough. */
#define SHORTEST (50 * NS_PER_US)

static _Atomic double rate = 1.0;

SIM_EXPORT int usleep(useconds_t us);
SIM_EXPORT int nanosleep(const struct timespec *time, struct timespec *left);

void sleep_rate(double factor)
{
	atomic_store(&rate, factor);
}

static uint64_t to_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
}

static struct timespec from_ns(double ns)
{
	uint64_t whole = (uint64_t)ns;

	return (struct timespec){ .tv_sec = (time_t)(whole / NS_PER_S),
				  .tv_nsec = (long)(whole % NS_PER_S) };
}

/* 0, or -1 with errno and with what is left of the time that was asked for. */
static int sleep_scaled(const struct timespec *time, struct timespec *left, double factor)
{
	struct timespec scaled = from_ns((double)to_ns(time) / factor);
	struct timespec rest = { 0 };

	if (to_ns(&scaled) < SHORTEST)
		return sched_yield();
	if (!real()->nanosleep(&scaled, &rest))
		return 0;
	if (left && errno == EINTR)
		*left = from_ns((double)to_ns(&rest) * factor);
	return -1;
}

int usleep(useconds_t us)
{
	struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
	double factor = atomic_load_explicit(&rate, memory_order_relaxed);

	return factor == 1.0 ? real()->usleep(us) : sleep_scaled(&time, NULL, factor);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	double factor = atomic_load_explicit(&rate, memory_order_relaxed);

	/* What the kernel would refuse, it shall refuse itself. */
	if (factor == 1.0 || !time || time->tv_sec < 0 || time->tv_nsec < 0 ||
	    time->tv_nsec >= (long)NS_PER_S)
		return real()->nanosleep(time, left);
	return sleep_scaled(time, left, factor);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wall clock that the program sees: real time until a command changes it. Readers take no lock:
 * a sequence number tells them that a change came in between.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "clock.h"
#include "real.h"

static struct {
	atomic_bool changed;
	atomic_uint sequence; /* odd while a change is written */
	_Atomic int64_t real_base;
	_Atomic int64_t wall_base;
	_Atomic double rate;
} wall = { .rate = 1.0 };

SIM_EXPORT int clock_gettime(clockid_t id, struct timespec *ts);
SIM_EXPORT int gettimeofday(struct timeval *restrict tv, void *restrict zone);
SIM_EXPORT time_t time(time_t *at);

static int real_clock(clockid_t id, struct timespec *ts)
{
	/* An allocator may ask for the time while the dynamic linker looks a name up for us. */
	if (!real_ready())
		return (int)syscall(SYS_clock_gettime, id, ts);
	return real()->clock_gettime(id, ts);
}

static int64_t to_ns(const struct timespec *ts)
{
	return (int64_t)ts->tv_sec * (int64_t)NS_PER_S + ts->tv_nsec;
}

uint64_t clock_now(void)
{
	struct timespec ts;

	real_clock(CLOCK_MONOTONIC, &ts);
	return (uint64_t)to_ns(&ts);
}

static int64_t wall_from_real(int64_t now)
{
	int64_t base, from;
	unsigned sequence;
	double rate;

	do {
		sequence = atomic_load(&wall.sequence);
		from = atomic_load(&wall.real_base);
		base = atomic_load(&wall.wall_base);
		rate = atomic_load(&wall.rate);
	} while (sequence & 1 || sequence != atomic_load(&wall.sequence));
	return base + (int64_t)((double)(now - from) * rate);
}

static void rebase(int64_t step, double rate)
{
	struct timespec ts;
	int64_t now, shown;

	real_clock(CLOCK_REALTIME, &ts);
	now = to_ns(&ts);
	shown = atomic_load(&wall.changed) ? wall_from_real(now) : now;
	atomic_fetch_add(&wall.sequence, 1);
	atomic_store(&wall.real_base, now);
	atomic_store(&wall.wall_base, shown + step);
	atomic_store(&wall.rate, rate);
	atomic_fetch_add(&wall.sequence, 1);
	atomic_store(&wall.changed, true);
}

void clock_step_wall(int64_t ms)
{
	rebase(ms * (int64_t)NS_PER_MS, atomic_load(&wall.rate));
}

void clock_rate_wall(double factor)
{
	rebase(0, factor);
}

/* The coarse clock's lag is not to be changed together with the rate, to seconds: it has none then. */
static clockid_t source_of(clockid_t id)
{
	return atomic_load(&wall.rate) == 1.0 ? id : CLOCK_REALTIME;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	bool is_wall = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
	int64_t now;
	int error;

	if (!is_wall || !atomic_load_explicit(&wall.changed, memory_order_relaxed))
		return real_clock(id, ts);
	error = real_clock(source_of(id), ts);
	if (error)
		return error;
	now = wall_from_real(to_ns(ts));
	ts->tv_sec = (time_t)(now / (int64_t)NS_PER_S);
	ts->tv_nsec = (long)(now % (int64_t)NS_PER_S);
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timezone *tz = zone;
	struct timespec ts;

	if (tz)
		*tz = (struct timezone){ 0 };
	if (clock_gettime(CLOCK_REALTIME, &ts))
		return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = (suseconds_t)(ts.tv_nsec / (long)NS_PER_US);
	return 0;
}

time_t time(time_t *at)
{
	struct timespec ts;

	/* The C library's time() reads the coarse clock too: it must not run ahead of stat times. */
	clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	if (at)
		*at = ts.tv_sec;
	return ts.tv_sec;
}

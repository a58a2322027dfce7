/* SPDX-License-Identifier: BSD-2-Clause */
/* The guard's decisions. It reads clocks and registers only through clock.h and registers.h. */
#include <stddef.h>

#include "clock.h"
#include "guard.h"

/* Below libmlx5's third miss, which comes 3000 ms after the counter's last move at the earliest. */
#define STALL_MS 2000

/* libmlx5's MAX_MISSES, at which it aborts. */
#define MISSES_FATAL 3

/* How long to wait for the counter to move when libmlx5 must not look at it before. */
#define COUNTER_WAIT_MS 10

/*
 * So far from libmlx5's next check nothing needs to be looked at: something may hold a call up for that long
 * before libmlx5 reads its clock. That it did not take longer is found out afterwards.
 */
#define FAR_MS 200

/*
 * Until the coarse clock ticks no time has passed. A kernel whose ticks stay away is not believed for more
 * than so many calls.
 */
#define CALLS_PER_TICK 32

/* Between two ticks of the coarse clock, on the slowest kernels. */
#define TICK_MS 10

/*
 * Looking costs microseconds on hardware. When this many looks have been spent, the next call that
 * needs one waits until one check of libmlx5 settles when its next one comes, together with all
 * that would come within the horizon: milliseconds on a busy device, a second once where the
 * device's past is not known.
 */
#define CREDIT_MAX        10
#define CREDIT_PER_SECOND 4
#define HORIZON_MS        100

/* NIC interface states, MLX5_NIC_IFC_* of the programmer's reference manual. */
#define NIC_DISABLED 1
#define NIC_RESET    7

static void remember(struct guard *guard)
{
	struct mlx5vfio_health now = { 0 };

	registers_report(guard->bar, &now);
	if (now.hw_id == UINT32_MAX)
		return;
	guard->known = (struct mlx5vfio_health){
		.fw_major = now.fw_major,
		.fw_minor = now.fw_minor,
		.fw_subminor = now.fw_subminor,
		.hw_id = now.hw_id,
	};
}

/*
 * libmlx5 may have counted misses while nobody kept count: what is not known is the worst. It costs a
 * call that comes before the counter's next move a wait for that.
 */
static void start(struct guard *guard, bool fresh)
{
	registers_sample(guard->bar, &guard->last);
	guard->samples++;
	guard->moved_at = clock_ms();
	guard->counter_after = guard->last.counter;
	guard->queue_page = guard->last.queue_page;
	remember(guard);
	guard->misses = fresh ? 0 : MISSES_FATAL - 1;
}

void guard_init(struct guard *guard, bar_t bar, bool fresh)
{
	*guard = (struct guard){ .bar = bar, .on = bar != NULL, .credit = CREDIT_MAX };
	if (fresh)
		throttle_init_fresh(&guard->throttle);
	else
		throttle_init_unknown(&guard->throttle);
	if (bar)
		start(guard, fresh);
}

static void doubt(struct guard *guard)
{
	guard->far = false;
	guard->believed = 0;
}

void guard_switch(struct guard *guard, bool on)
{
	if (guard->on == on || !guard->bar)
		return;
	guard->on = on;
	doubt(guard);
	throttle_init_unknown(&guard->throttle);
	if (on)
		start(guard, false);
}

bool guard_active(const struct guard *guard)
{
	return guard->on;
}

uint32_t guard_unmoved_ms(const struct guard *guard)
{
	int64_t unmoved = clock_ms() - guard->moved_at;

	return unmoved > UINT32_MAX ? UINT32_MAX : (uint32_t)unmoved;
}

/*
 * Somebody reset the function from outside: what libmlx5 set up in it is gone, and nothing else
 * shows. During the reset itself the device does not answer.
 */
static enum mlx5vfio_fault judge_lost_queue(const struct guard *guard)
{
	return registers_answer(guard->bar) ? MLX5VFIO_FOREIGN_RESET : MLX5VFIO_PCI_OFFLINE;
}

/*
 * libmlx5's sensors in libmlx5's order, then the stall, which we judge by time and it by counting.
 */
static enum mlx5vfio_fault judge(const struct guard *guard, const struct registers_sample *sample)
{
	if (sample->fw_ver == UINT32_MAX)
		return MLX5VFIO_PCI_OFFLINE;
	if (sample->nic_state == NIC_DISABLED)
		return MLX5VFIO_NIC_DISABLED;
	if (sample->nic_state == NIC_RESET)
		return MLX5VFIO_NIC_RESET;
	if (sample->recovery_request && sample->synd)
		return MLX5VFIO_FW_FATAL;
	if (guard->queue_page && sample->queue_page != guard->queue_page)
		return judge_lost_queue(guard);
	if (guard_unmoved_ms(guard) >= STALL_MS)
		return MLX5VFIO_STALLED;
	return MLX5VFIO_OK;
}

enum mlx5vfio_fault guard_look(struct guard *guard)
{
	uint32_t counter = guard->last.counter;

	registers_sample(guard->bar, &guard->last);
	guard->samples++;
	if (guard->last.counter != counter)
		guard->moved_at = clock_ms();
	return judge(guard, &guard->last);
}

static void refill_credit(struct guard *guard)
{
	int64_t seconds = (clock_ms() - guard->credit_at) / 1000;

	if (seconds <= 0)
		return;
	guard->credit_at += seconds * 1000;
	throttle_relax(&guard->throttle);
	if (seconds * CREDIT_PER_SECOND > CREDIT_MAX - guard->credit)
		guard->credit = CREDIT_MAX;
	else
		guard->credit += (unsigned)seconds * CREDIT_PER_SECOND;
}

/* How long a look may wait; 0 when it must be taken now or waiting gains nothing. */
static int wait_before_look(struct guard *guard)
{
	refill_credit(guard);
	if (guard->credit || guard->waited)
		return 0;
	return (int)throttle_gain(&guard->throttle, guard->call_from, HORIZON_MS);
}

static enum guard_verdict put_off(struct guard *guard, int ms, int *wait_ms)
{
	guard->waited = true;
	*wait_ms = ms;
	return GUARD_WAIT;
}

/* Does the next check of libmlx5 find the counter where its last one may have found it? */
static bool may_miss(const struct guard *guard)
{
	return guard->last.counter == guard->counter_after;
}

/*
 * The clock may be stepped so that libmlx5 checks several times before a healthy counter moves:
 * then it counts misses that are none.
 */
static bool would_be_fatal_miss(const struct guard *guard)
{
	return may_miss(guard) && guard->misses + 1 >= MISSES_FATAL;
}

static enum guard_verdict look_before_call(struct guard *guard, int *wait_ms,
					   enum mlx5vfio_fault *fault)
{
	int wait = wait_before_look(guard);

	if (wait)
		return put_off(guard, wait, wait_ms);
	if (guard->credit)
		guard->credit--;
	guard->looked = true;
	*fault = guard_look(guard);
	return *fault == MLX5VFIO_OK ? GUARD_CALL : GUARD_FAULT;
}

static enum guard_verdict before_near_call(struct guard *guard, bool looked, int *wait_ms,
					   enum mlx5vfio_fault *fault)
{
	enum guard_verdict verdict = GUARD_CALL;

	if (!throttle_may_check(&guard->throttle, guard->call_from))
		return GUARD_CALL;
	if (!looked)
		verdict = look_before_call(guard, wait_ms, fault);
	if (verdict == GUARD_CALL && would_be_fatal_miss(guard))
		verdict = put_off(guard, COUNTER_WAIT_MS, wait_ms);
	return verdict;
}

static bool same_tick(const struct timespec *a, const struct timespec *b)
{
	return a->tv_nsec == b->tv_nsec && a->tv_sec == b->tv_sec;
}

bool guard_is_far(struct guard *guard)
{
	struct timespec now;

	clock_wall_tick(&now);
	if (guard->believed && same_tick(&now, &guard->far_tick)) {
		guard->believed--;
		return true;
	}
	if (!guard->on)
		return true;
	guard->looked = false;
	guard->call_from = clock_wall_ms();
	guard->far = throttle_is_far(&guard->throttle, guard->call_from, FAR_MS);
	guard->far_tick = now;
	guard->believed = guard->far ? CALLS_PER_TICK : 0;
	return guard->far;
}

enum guard_verdict guard_before_call(struct guard *guard, bool looked, int *wait_ms,
				     enum mlx5vfio_fault *fault)
{
	enum guard_verdict verdict = GUARD_CALL;

	if (!guard_is_far(guard)) {
		guard->looked = looked;
		verdict = before_near_call(guard, looked, wait_ms, fault);
	}
	if (verdict == GUARD_CALL)
		guard->waited = false;
	return verdict;
}

static bool passed_far_from_check(struct guard *guard)
{
	struct timespec tick;
	uint64_t now;

	if (!guard->far)
		return false;
	clock_wall_tick(&tick);
	if (same_tick(&tick, &guard->far_tick))
		return true;
	now = clock_wall_ms();
	if (now > guard->call_from + TICK_MS)
		throttle_held_up(&guard->throttle, now - guard->call_from - TICK_MS);
	return throttle_is_far(&guard->throttle, now, 0);
}

/*
 * A check that came although none was due counts as a miss: nothing says that the counter had
 * moved.
 */
void guard_after_call(struct guard *guard)
{
	if (passed_far_from_check(guard) || !guard->on)
		return;
	doubt(guard);
	if (!throttle_called(&guard->throttle, guard->call_from, clock_wall_ms()))
		return;
	guard->misses = guard->looked && !may_miss(guard) ? 0 : guard->misses + 1;
	guard->counter_after = registers_counter(guard->bar);
}

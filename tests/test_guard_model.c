/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: none; show timeout=200 seconds=6 */
/*
 * The guard's own code against a model of libmlx5's health check, in simulated time. The clocks and the
 * registers that the guard reads are defined here instead of in core/.
 */
#include "../core/guard.c"
#include "../core/throttle.c"

#include <stdio.h>
#include <stdlib.h>

#include "support/support.h"

/* Simulated time and what lives in it, all in microseconds. */
static struct {
	uint64_t now; /* monotonic */
	int64_t wall; /* wall clock minus monotonic */
	uint64_t random;
	unsigned looks; /* register samples taken for the present call */
	uint64_t frozen_at;
	uint64_t next_accident;
	uint64_t ticks_stop_at,
		ticks_stop_us; /* when the kernel's ticks stay away, and for how long */
	uint64_t back_us;      /* so far is the wall clock set back during the present call */
	bool back_late;        /* after libmlx5 has read it */
} world;

/* libmlx5's state: see mlx5_vfio_poll_health() in providers/mlx5/mlx5_vfio.c. */
static struct {
	uint64_t checked_ms;
	uint32_t count;
	unsigned misses;
	uint64_t checks, unsampled, aborts;
} libmlx5;

static uint64_t random_below(uint64_t bound)
{
	world.random = world.random * 6364136223846793005u + 1442695040888963407u;
	return (world.random >> 33) % bound;
}

int64_t clock_ms(void)
{
	return (int64_t)(world.now / 1000);
}

uint64_t clock_wall_ms(void)
{
	return (uint64_t)((int64_t)world.now + world.wall) / 1000;
}

static uint64_t last_tick(void)
{
	bool stopped = world.now >= world.ticks_stop_at &&
		       world.now < world.ticks_stop_at + world.ticks_stop_us;
	uint64_t now = stopped ? world.ticks_stop_at : world.now;

	return now - now % 10000;
}

/* As of the last timer tick; a step of the clock shows at once. */
void clock_wall_tick(struct timespec *now)
{
	int64_t us = (int64_t)last_tick() + world.wall;

	now->tv_sec = us / 1000000;
	now->tv_nsec = us % 1000000 * 1000;
}

/* A healthy counter moves every 10 ms. */
uint32_t registers_counter(bar_t bar)
{
	uint64_t at = world.frozen_at && world.now > world.frozen_at ? world.frozen_at : world.now;

	(void)bar;
	return (uint32_t)(at / 10000) & 0xffffff;
}

void registers_report(bar_t bar, struct mlx5vfio_health *health)
{
	(void)bar;
	(void)health;
}

bool registers_answer(bar_t bar)
{
	(void)bar;
	return true;
}

void registers_sample(bar_t bar, struct registers_sample *sample)
{
	world.now += 5;
	world.looks++;
	*sample = (struct registers_sample){ .counter = registers_counter(bar) };
}

static void libmlx5_call(void)
{
	uint64_t now = clock_wall_ms();
	uint32_t count;

	if (now - libmlx5.checked_ms < 1000)
		return;
	libmlx5.checks++;
	if (!world.looks)
		libmlx5.unsampled++;
	world.now += 5;
	count = registers_counter(NULL);
	libmlx5.misses = count == libmlx5.count ? libmlx5.misses + 1 : 0;
	libmlx5.count = count;
	libmlx5.checked_ms = now;
	if (libmlx5.misses == 3)
		libmlx5.aborts++;
}

struct scenario {
	const char *name;
	uint64_t gap_us;     /* between calls */
	uint64_t preempt_us; /* at most, between our clock reading and libmlx5's */
	uint64_t held_up_us; /* the same where no check is near, and once more after the call */
	bool steps;          /* the wall clock jumps by up to some seconds, about every second */
	uint64_t margin;
	bool accidents;
};

struct outcome {
	uint64_t calls, samples, waits, waited_ms, alarms, accidents;
	uint64_t settled_samples; /* after the first second */
};

static void maybe_step(const struct scenario *scenario, uint64_t *next_step)
{
	if (!scenario->steps || world.now < *next_step)
		return;
	world.wall += (int64_t)random_below(6000000) - 3000000;
	*next_step = world.now + 500000 + random_below(1000000);
}

static void hold_up(uint64_t at_most_us)
{
	if (at_most_us && !random_below(64))
		world.now += random_below(at_most_us);
}

static void preempt(const struct scenario *scenario)
{
	/* Mostly nothing, now and then all that the margin stands for: whole milliseconds are read. */
	if (scenario->preempt_us && !random_below(16))
		world.now += random_below(scenario->preempt_us);
}

/* What no margin allows for: libmlx5 may check unsampled in this call, but in no other one after it. */
static void have_accident(struct outcome *outcome)
{
	if (world.now < world.next_accident)
		return;
	world.next_accident = world.now + 5000000 + random_below(10000000);
	outcome->accidents++;
	switch (random_below(3)) {
	case 0:
		world.now += random_below(1200000);
		break;
	case 1:
		world.wall += (int64_t)random_below(6000000) - 3000000;
		break;
	default:
		world.ticks_stop_at = world.now;
		world.ticks_stop_us = random_below(600000);
		break;
	}
}

/* As mlx5vfio_process() asks: first in short, and at length only where that does not do. */
static enum guard_verdict ask(struct guard *guard, int *wait_ms)
{
	enum mlx5vfio_fault fault = MLX5VFIO_OK;

	return guard_is_far(guard) ? GUARD_CALL : guard_before_call(guard, false, wait_ms, &fault);
}

static bool one_call(struct guard *guard, const struct scenario *scenario, struct outcome *outcome)
{
	int wait_ms = 0;

	world.looks = 0;
	if (!scenario->margin)
		guard->throttle.margin = 0; /* however it would follow the calls */
	switch (ask(guard, &wait_ms)) {
	case GUARD_FAULT:
		outcome->alarms++;
		return false;
	case GUARD_WAIT:
		outcome->waits++;
		outcome->waited_ms += (uint64_t)wait_ms;
		world.now += (uint64_t)wait_ms * 1000;
		return true;
	case GUARD_CALL:
		break;
	}
	if (guard->far)
		hold_up(scenario->held_up_us);
	else
		preempt(scenario);
	if (scenario->accidents)
		have_accident(outcome);
	if (!world.back_late)
		world.wall -= (int64_t)world.back_us;
	libmlx5_call();
	if (world.back_late)
		world.wall -= (int64_t)world.back_us;
	hold_up(2 * scenario->held_up_us);
	world.now += 4;
	guard_after_call(guard);
	outcome->calls++;
	return true;
}

static bool one_call_made(struct guard *guard, const struct scenario *scenario,
			  struct outcome *outcome)
{
	uint64_t calls = outcome->calls;

	ck_assert(one_call(guard, scenario, outcome));
	return outcome->calls > calls;
}

static void world_reset(uint64_t seed)
{
	memset(&world, 0, sizeof(world));
	memset(&libmlx5, 0, sizeof(libmlx5));
	world.random = seed;
	world.now = 1000000000;
	world.wall = 1700000000000000;
}

static struct outcome run(const struct scenario *scenario, uint64_t seconds, uint64_t seed)
{
	static const uint32_t bar;
	struct outcome outcome = { 0 };
	struct guard guard;
	uint64_t end, next_step, first_second;
	uint64_t samples_then = 0;

	world_reset(seed);
	/* The program called libmlx5 itself, up to a second before it attached. */
	libmlx5.checked_ms = clock_wall_ms() - random_below(1500);
	guard_init(&guard, &bar, false);
	guard.throttle.margin = scenario->margin;
	first_second = world.now + 2000000;
	next_step = world.now + 700000;
	end = world.now + seconds * 1000000;
	while (world.now < end && one_call(&guard, scenario, &outcome)) {
		world.now += scenario->gap_us
				     ? scenario->gap_us / 2 + random_below(scenario->gap_us)
				     : 1;
		maybe_step(scenario, &next_step);
		if (world.now < first_second)
			samples_then = guard.samples;
	}
	outcome.samples = guard.samples;
	outcome.settled_samples = guard.samples - samples_then;
	return outcome;
}

static const struct scenario scenarios[] = {
	{ "back to back", 0, 10000, 0, true, THROTTLE_MARGIN_MS, false },
	{ "100 us", 100, 10000, 0, true, THROTTLE_MARGIN_MS, false },
	{ "1 ms", 1000, 10000, 0, true, THROTTLE_MARGIN_MS, false },
	{ "10 ms", 10000, 10000, 0, true, THROTTLE_MARGIN_MS, false },
	{ "500 ms", 500000, 10000, 0, true, THROTTLE_MARGIN_MS, false },
	{ "held up", 1000, 10000, 190000, true, THROTTLE_MARGIN_MS, false },
	{ "held up, rare", 100000, 10000, 190000, true, THROTTLE_MARGIN_MS, false },
};

#define SCENARIOS (int)(sizeof(scenarios) / sizeof(scenarios[0]))

START_TEST(no_check_goes_unsampled)
{
	const struct scenario *scenario = &scenarios[_i];
	uint64_t seconds = (uint64_t)support_rounds(scenario->gap_us ? 3600 : 300);
	struct outcome outcome = run(scenario, seconds, 1 + (uint64_t)_i);

	printf("%-13s %8llu s %10llu calls %8llu checks, %llu unsampled, %llu samples, %llu waits of "
	       "%llu ms\n",
	       scenario->name, (unsigned long long)seconds, (unsigned long long)outcome.calls,
	       (unsigned long long)libmlx5.checks, (unsigned long long)libmlx5.unsampled,
	       (unsigned long long)outcome.samples, (unsigned long long)outcome.waits,
	       (unsigned long long)(outcome.waits ? outcome.waited_ms / outcome.waits : 0));
	ck_assert_uint_gt(libmlx5.checks, seconds / 2);
	ck_assert_uint_eq(libmlx5.unsampled, 0);
	ck_assert_uint_eq(libmlx5.aborts, 0);
	ck_assert_uint_eq(outcome.alarms, 0);
}
END_TEST

/* One unsampled check for each, and never an abort of a healthy device. */
START_TEST(accidents_do_not_last)
{
	static const uint64_t gaps_us[] = { 100, 1000, 5000, 60000, 500000 };
	struct scenario scenario = { .margin = THROTTLE_MARGIN_MS, .accidents = true };
	struct outcome outcome;

	scenario.gap_us = gaps_us[_i];
	outcome = run(&scenario, (uint64_t)support_rounds(3600), 23);
	printf("gap %6llu us: %llu accidents, %llu of %llu checks unsampled\n",
	       (unsigned long long)scenario.gap_us, (unsigned long long)outcome.accidents,
	       (unsigned long long)libmlx5.unsampled, (unsigned long long)libmlx5.checks);
	ck_assert_uint_gt(outcome.accidents, 100);
	ck_assert_uint_le(libmlx5.unsampled, outcome.accidents);
	ck_assert_uint_eq(libmlx5.aborts, 0);
	ck_assert_uint_eq(outcome.alarms, 0);
}
END_TEST

/* The proof that the model can tell: without the margin it finds unsampled checks. */
START_TEST(without_the_margin_checks_go_unsampled)
{
	struct scenario scenario = scenarios[1];

	scenario.margin = 0;
	run(&scenario, 3600, 7);
	printf("without the margin: %llu of %llu checks unsampled\n",
	       (unsigned long long)libmlx5.unsampled, (unsigned long long)libmlx5.checks);
	ck_assert_uint_gt(libmlx5.unsampled, 0);
}
END_TEST

/* Samples a second in the long run: ten up to 1,000 calls a second, 1 % of the calls beyond. */
START_TEST(looking_stays_cheap)
{
	static const uint64_t gaps_us[] = { 1000, 100, 10 };
	struct scenario scenario = { .preempt_us = 200, .margin = THROTTLE_MARGIN_MS };
	uint64_t seconds = 100;
	uint64_t most;
	struct outcome outcome;

	scenario.gap_us = gaps_us[_i];
	outcome = run(&scenario, seconds, 3);
	printf("gap %4llu us: %llu samples a second for %llu calls, %llu in the first two seconds\n",
	       (unsigned long long)scenario.gap_us,
	       (unsigned long long)(outcome.settled_samples / (seconds - 2)),
	       (unsigned long long)(outcome.calls / seconds),
	       (unsigned long long)(outcome.samples - outcome.settled_samples));
	most = outcome.calls / seconds <= 1000 ? 10 * seconds : outcome.calls / 100;
	ck_assert_uint_le(outcome.samples, most);
}
END_TEST

/* A device whose past is known settles without ever waiting long. */
START_TEST(fresh_device_never_waits_long)
{
	static const uint32_t bar;
	struct scenario scenario = { .gap_us = 1000, .margin = THROTTLE_MARGIN_MS };
	struct outcome outcome = { 0 };
	struct guard guard;
	uint64_t before;

	world_reset(5);
	guard_init(&guard, &bar, true);
	while (world.now < 61000000 + 1000000000) {
		before = world.now;
		/* by if: Check writes a line for each assertion that holds */
		if (!one_call(&guard, &scenario, &outcome) || world.now - before >= 20000)
			ck_abort_msg("waited for %llu us",
				     (unsigned long long)(world.now - before));
		world.now += scenario.gap_us;
	}
	ck_assert_uint_eq(libmlx5.unsampled, 0);
}
END_TEST

/* A frozen counter is found by time, always before libmlx5's third miss, whatever the clock does. */
START_TEST(stall_is_found_before_libmlx5_aborts)
{
	static const uint32_t bar;
	struct scenario scenario = scenarios[_i];
	struct outcome outcome;
	struct guard guard;
	uint64_t next_step;
	int round;

	for (round = 0; round < support_rounds(2000); round++) {
		outcome = (struct outcome){ 0 };
		world_reset((uint64_t)round * 97 + 1);
		guard_init(&guard, &bar, false);
		next_step = world.now;
		world.frozen_at = world.now + 3000000 + random_below(3000000);
		while (one_call(&guard, &scenario, &outcome)) {
			world.now += scenario.gap_us / 2 + random_below(scenario.gap_us + 1);
			maybe_step(&scenario, &next_step);
		}
		ck_assert_uint_eq(libmlx5.aborts, 0);
		ck_assert_uint_ge(world.now, world.frozen_at + 1980000);
		ck_assert_uint_le(world.now, world.frozen_at + 6000000 + 4 * scenario.gap_us);
	}
}
END_TEST

/* Steps faster than the counter moves make libmlx5 count misses on a healthy device. */
START_TEST(rapid_steps_are_no_stall)
{
	static const uint32_t bar;
	struct scenario scenario = { .margin = THROTTLE_MARGIN_MS };
	struct outcome outcome = { 0 };
	struct guard guard;
	int round;

	world_reset(11);
	guard_init(&guard, &bar, false);
	for (round = 0; round < support_rounds(1000000); round++) {
		if (!one_call(&guard, &scenario, &outcome))
			ck_abort_msg("taken for dead in round %d", round);
		world.wall += (round & 1 ? 1 : -1) * 3600000000LL;
		world.now += 1000;
	}
	ck_assert_uint_gt(libmlx5.checks, outcome.calls / 2);
	ck_assert_uint_eq(libmlx5.aborts, 0);
}
END_TEST

/* The registers were read for one call; the next one, made in short, is not that. */
START_TEST(a_look_counts_for_one_call)
{
	static const uint32_t bar;
	enum mlx5vfio_fault fault = MLX5VFIO_OK;
	struct guard guard;
	int wait_ms = 0;

	world_reset(13);
	guard_init(&guard, &bar, true);
	world.now += 20000;
	ck_assert_int_eq(guard_look(&guard), MLX5VFIO_OK);
	ck_assert_int_eq(guard_before_call(&guard, true, &wait_ms, &fault), GUARD_CALL);
	libmlx5_call();
	guard_after_call(&guard);
	ck_assert_uint_eq(libmlx5.checks, 1);
	ck_assert_uint_eq(guard.misses, 0);
	world.now += 20000;
	ck_assert_int_eq(guard_look(&guard), MLX5VFIO_OK);
	ck_assert(guard_is_far(&guard));
	world.wall += 2000000;
	libmlx5_call();
	guard_after_call(&guard);
	ck_assert_uint_eq(libmlx5.checks, 2);
	ck_assert_uint_eq(guard.misses, 1);
}
END_TEST

/*
 * Set back while a call is made, before libmlx5 reads the clock or after it. That call itself
 * cannot be saved, but none after it goes unsampled: they are rare enough to tell one reading
 * from the other.
 */
START_TEST(step_back_during_a_call)
{
	static const uint32_t bar;
	struct scenario scenario = { .gap_us = 100000, .margin = THROTTLE_MARGIN_MS };
	struct outcome outcome = { 0 };
	struct guard guard;
	int round, call;

	world_reset(13);
	guard_init(&guard, &bar, false);
	for (round = 0; round < support_rounds(1000); round++) {
		world.back_us = 1 + random_below(3000000);
		world.back_late = round & 1;
		while (!one_call_made(&guard, &scenario, &outcome))
			;
		world.now += random_below(2 * scenario.gap_us);
		libmlx5.unsampled = 0;
		world.back_us = 0;
		for (call = 0; call < 40; call++) {
			ck_assert(one_call(&guard, &scenario, &outcome));
			world.now += scenario.gap_us / 2 + random_below(scenario.gap_us);
		}
		ck_assert_uint_eq(libmlx5.unsampled, 0);
	}
	ck_assert_uint_eq(libmlx5.aborts, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard model");
	TCase *tcase = tcase_create("guard");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, no_check_goes_unsampled, 0, SCENARIOS);
	tcase_add_loop_test(tcase, accidents_do_not_last, 0, 5);
	tcase_add_test(tcase, without_the_margin_checks_go_unsampled);
	tcase_add_loop_test(tcase, looking_stays_cheap, 0, 3);
	tcase_add_test(tcase, fresh_device_never_waits_long);
	tcase_add_loop_test(tcase, stall_is_found_before_libmlx5_aborts, 1, SCENARIOS);
	tcase_add_test(tcase, rapid_steps_are_no_stall);
	tcase_add_test(tcase, a_look_counts_for_one_call);
	tcase_add_test(tcase, step_back_during_a_call);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

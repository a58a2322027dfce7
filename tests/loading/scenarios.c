/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many events and many devices, with command threads beside them: everything is served, nothing
 * spins, nothing grows. Included by a test program after its loop. LOAD_FULL=1 has the full numbers.
 */
#include <malloc.h>
#include <unistd.h>

#include "devices.c"

struct scenario {
	const char *name;
	unsigned devices, full_devices;
	int requests, full_requests; /* of each device */
	int interval_ms;
	bool in_bursts;
	unsigned threads; /* that run commands */
};

/* A single device has no tick, which would serve what a wakeup misses; many have it, as in life. */
static const struct scenario scenarios[] = {
	{ "spaced", 1, 1, 20000, 1000000, 0, false, 1 },
	{ "spaced_many", 64, 256, 500, 10000, MLX5VFIO_DEFAULT_INTERVAL, false, 4 },
	{ "bursts", 1, 1, 2000, 1000000, 0, true, 1 },
	{ "bursts_many", 64, 256, 250, 10000, MLX5VFIO_DEFAULT_INTERVAL, true, 4 },
};

enum {
	SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]),
	SAMPLES = 3,
	QUIET_MS = 200,   /* less than a tick */
	QUIET_TURNS = 20, /* one for the tick, and what the loops' clocks make of it */
	PAUSE_US = 500,   /* after each command of a thread */
	PAUSE_IN_BURSTS_US = 10000,
	HEAP_SLACK = 64 * 1024,
	RSS_SLACK = 1024 * 1024,
};

struct memory {
	size_t heap, rss;
};

/* One run of a scenario. */
struct outcome {
	unsigned devices;
	uint64_t requests; /* of all devices */
	struct sums sums;
	uint64_t commands, failed;
	int64_t ms;
	struct memory memory[SAMPLES]; /* before the commands, after half, at the end */
};

static struct memory memory_now(void)
{
	struct mallinfo2 info = mallinfo2();
	struct memory memory = { .heap = info.uordblks + info.hblkhd };
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	memory.rss = pages * (size_t)sysconf(_SC_PAGESIZE);
	return memory;
}

/* A line of figures. */
static void print(const struct scenario *scenario, const struct outcome *outcome)
{
	const struct sums *sums = &outcome->sums;
	const struct memory *memory = outcome->memory;

	printf("%-8s %-11s %3u devices, %7" PRIu64 " requests, %3" PRId64 ".%" PRId64 " s: ",
	       tested_loop.name, scenario->name, outcome->devices, outcome->requests,
	       outcome->ms / 1000, outcome->ms / 100 % 10);
	printf("posted %" PRIu64 ", consumed %" PRIu64 ", ", sums->eqes, sums->consumed);
	printf("pages requested %" PRIu64 ", given %" PRIu64 ", violations %" PRIu64 ", ",
	       sums->requested, sums->given, sums->violations);
	printf("errors %" PRIu64 ", changes %" PRIu64 ", reported %" PRIu64 ", ", sums->errors,
	       sums->changes, sums->told);
	printf("commands %" PRIu64 ", failed %" PRIu64 ", ", outcome->commands, outcome->failed);
	printf("interrupts %" PRIu64 ", calls %" PRIu64 " (%.2f a request), turns %" PRIu64 ", ",
	       sums->interrupts, sums->calls, (double)sums->calls / (double)outcome->requests,
	       load.turns);
	printf("heap %zu %zu %zu KiB, RSS %zu %zu %zu KiB\n", memory[0].heap / 1024,
	       memory[1].heap / 1024, memory[2].heap / 1024, memory[0].rss / 1024,
	       memory[1].rss / 1024, memory[2].rss / 1024);
}

/*
 * An interrupt is good for one call, a failure for one retry; a turn of the loop without a call takes
 * a millisecond, or less where the loop's clock is coarse. A spin makes a million turns a second.
 */
static void check_no_spin(const struct scenario *scenario, const struct outcome *outcome)
{
	const struct sums *sums = &outcome->sums;
	uint64_t ms = (uint64_t)outcome->ms, ticks = 0;

	if (scenario->interval_ms)
		ticks = outcome->devices * (ms / (uint64_t)scenario->interval_ms + 2);
	ck_assert_uint_le(sums->ticks, ticks);
	ck_assert_uint_le(sums->errors, sums->eqes);
	ck_assert_uint_le(sums->calls,
			  sums->interrupts + sums->ticks + sums->errors + outcome->devices);
	ck_assert_uint_le(load.turns, sums->calls + sums->deferred + 3 * ms + 1000);
}

/* When there is nothing to do any more, nothing is done but the tick. */
static void check_quiet(const struct sums *before, unsigned devices)
{
	int64_t until = support_now_ms() + QUIET_MS, left;
	uint64_t turns = load.turns;
	struct sums after;

	while ((left = until - support_now_ms()) > 0)
		turn((int)left);
	after = sum_up();
	ck_assert_uint_le(load.turns - turns, QUIET_TURNS);
	ck_assert_uint_le(after.calls - before->calls, 2 * devices);
	ck_assert_uint_eq(after.eqes, before->eqes);
}

static void check_flat(const struct memory memory[])
{
	if (support_rounds(10) < 10)
		return; /* a sanitizer's memory is its own */
	for (int i = 1; i < SAMPLES; i++) {
		ck_assert_uint_le(memory[i].heap, memory[0].heap + HEAP_SLACK);
		ck_assert_uint_le(memory[i].rss, memory[0].rss + RSS_SLACK);
	}
}

static void check(const struct scenario *scenario, const struct outcome *outcome)
{
	const struct sums *sums = &outcome->sums;

	ck_assert_uint_eq(sums->consumed, sums->eqes);
	ck_assert_uint_eq(sums->requested, outcome->requests);
	ck_assert_uint_eq(sums->violations, 0);
	ck_assert_uint_eq(sums->told, sums->changes);
	if (scenario->in_bursts) {
		ck_assert_uint_gt(sums->changes, 0);
		ck_assert_uint_lt(sums->given, sums->requested);
	} else {
		ck_assert_uint_eq(sums->errors + sums->changes + outcome->failed, 0);
		ck_assert_uint_eq(sums->given, sums->requested);
	}
	ck_assert_uint_gt(outcome->commands, 0);
	check_no_spin(scenario, outcome);
	check_quiet(sums, outcome->devices);
	check_flat(outcome->memory);
}

/*
 * A command that waits handles page requests by itself and then fails with their error, while it is
 * still in flight. In bursts that is most of them: they ask for nothing that would be lost then, and
 * leave most of the errors to the loop.
 */
static void start_commands(const struct scenario *scenario)
{
	load_command_fn *command = scenario->in_bursts ? load_query : load_pd;
	unsigned pause_us = scenario->in_bursts ? PAUSE_IN_BURSTS_US : PAUSE_US;

	load.commands =
		load_commands_start(command, scenario->threads, pause_us, load.ctxs, load.count);
}

/*
 * Before the commands begin, a tenth of the requests more: commands also serve what a wakeup or a
 * retry of ours misses, and so would hide it.
 */
static void go(const struct scenario *scenario, struct outcome *outcome, uint64_t requests)
{
	int64_t from = support_now_ms();

	feed_all(requests / 10);
	outcome->memory[0] = memory_now();
	start_commands(scenario);
	feed_all(requests / 2);
	outcome->memory[1] = memory_now();
	feed_all(requests - requests / 2);
	outcome->commands = load_commands_stop(load.commands, &outcome->failed);
	load.commands = NULL;
	until_consumed();
	outcome->memory[2] = memory_now();
	outcome->ms = support_now_ms() - from;
	outcome->sums = sum_up();
}

START_TEST(goes_on_under_load)
{
	const struct scenario *scenario = &scenarios[_i];
	bool full = getenv("LOAD_FULL") != NULL;
	int requests = full ? scenario->full_requests : support_rounds(scenario->requests);
	struct outcome outcome = {
		.devices = full ? scenario->full_devices : scenario->devices,
	};

	outcome.requests = (uint64_t)(requests + requests / 10) * outcome.devices;
	devices_begin(outcome.devices, scenario->interval_ms, scenario->in_bursts);
	go(scenario, &outcome, (uint64_t)requests);
	print(scenario, &outcome);
	check(scenario, &outcome);
	devices_end();
}
END_TEST

/* A case each, so that CK_RUN_CASE=bursts runs one of them. */
static void add_scenario(Suite *suite, int index)
{
	TCase *tcase = tcase_create(scenarios[index].name);

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, clean_up);
	tcase_add_loop_test(tcase, goes_on_under_load, index, index + 1);
	suite_add_tcase(suite, tcase);
}

static int loading_run(void)
{
	Suite *suite = suite_create("load");

	setvbuf(stdout, NULL, _IOLBF, 0);
	support_allow_fds();
	for (int i = 0; i < SCENARIOS; i++)
		add_scenario(suite, i);
	return support_run(suite);
}

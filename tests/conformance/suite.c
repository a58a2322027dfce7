/* SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios.h"
#include "subject.h"
#include "suite.h"

enum needs {
	NEEDS_NOTHING,
	NEEDS_UNREF,
	NEEDS_FD_ERRORS,
	NEEDS_LOOP_POINTER,
};

struct scenario {
	const char *name;
	void (*run)(const struct loop_driver *driver);
	enum needs needs;
	bool brief; /* also over the variants of a loop */
};

static const struct scenario scenarios[] = {
	{ "attach and detach at once", attach_detach_at_once, NEEDS_NOTHING, true },
	{ "1000 rounds of attach and detach", attach_many_rounds, NEEDS_NOTHING, false },
	{ "opened, attached, closed 50 times", attach_reopened_device, NEEDS_NOTHING, false },
	{ "fd number reused by the next open", attach_fd_number_reused, NEEDS_NOTHING, true },
	{ "wrong ctx refused", attach_wrong_ctx, NEEDS_NOTHING, false },
	{ "NULL loop refused", attach_null_loop, NEEDS_LOOP_POINTER, false },
	{ "ctx with a closed fd refused", attach_closed_fd, NEEDS_NOTHING, false },
	{ "attached twice refused", attach_twice, NEEDS_NOTHING, false },
	{ "fd of an undetached ctx refused", attach_fd_of_another, NEEDS_NOTHING, false },
	{ "loop destroyed before detach", attach_forget, NEEDS_NOTHING, true },
	{ "page requests all served", events_page_requests, NEEDS_NOTHING, true },
	{ "burst of page requests", events_burst, NEEDS_NOTHING, true },
	{ "lost interrupt", events_lost_interrupt, NEEDS_NOTHING, false },
	{ "spurious interrupt", events_spurious_interrupt, NEEDS_NOTHING, false },
	{ "wakeup taken by a command", events_taken_by_a_command, NEEDS_NOTHING, false },
	{ "signal storm", events_signal_storm, NEEDS_NOTHING, true },
	{ "statistics of any size", events_statistics, NEEDS_NOTHING, false },
	{ "lasting and changing errors", errors_of_libmlx5, NEEDS_NOTHING, true },
	{ "failed command, failed DMA map", errors_of_firmware, NEEDS_NOTHING, false },
	{ "interrupted call", errors_interrupted_call, NEEDS_NOTHING, false },
	{ "fd closed under us", errors_closed_fd, NEEDS_NOTHING, false },
	{ "error on the fd told as such", errors_on_fd, NEEDS_FD_ERRORS, true },
	{ "error on the fd does not spin", errors_on_fd_do_not_spin, NEEDS_NOTHING, true },
	{ "detach inside .error", detach_in_error_handler, NEEDS_NOTHING, true },
	{ "detach inside .health", detach_in_health_handler, NEEDS_NOTHING, true },
	{ "detach of another device", detach_of_another, NEEDS_NOTHING, true },
	{ "detach in the program's callback", detach_in_own_callback, NEEDS_NOTHING, true },
	{ "closed in the background", close_in_the_background, NEEDS_NOTHING, false },
	{ "closed inside .health", close_in_health_handler, NEEDS_NOTHING, true },
	{ "devices tick together", ticks_together, NEEDS_NOTHING, false },
	{ "one tick after a blocked loop", ticks_after_a_block, NEEDS_NOTHING, false },
	{ "attached in a late callback", ticks_set_late, NEEDS_NOTHING, false },
	{ "limits of the interval", ticks_limits, NEEDS_NOTHING, false },
	{ "unref lets the loop end", alive_unref, NEEDS_UNREF, true },
	{ "ref and unref answer truly", alive_unref_refused, NEEDS_NOTHING, false },
	{ "loop ends at the last detach", alive_until_detached, NEEDS_NOTHING, true },
	{ "each fault told once", faults_each, NEEDS_NOTHING, false },
	{ "dead before the attach", faults_before_attach, NEEDS_NOTHING, false },
	{ "no handlers", faults_without_handler, NEEDS_NOTHING, false },
	{ "fault found by asking", faults_asked_for, NEEDS_NOTHING, false },
	{ "one dies, the other goes on", faults_beside_a_healthy_one, NEEDS_NOTHING, true },
	{ "warning and its end", faults_warning, NEEDS_NOTHING, false },
	{ "handlers replaced", handlers_replaced, NEEDS_NOTHING, false },
	{ "queue: port changes in order", queue_port_changes, NEEDS_NOTHING, true },
	{ "queue: 1,000,000 events", queue_storm, NEEDS_NOTHING, false },
	{ "queue: storm within a budget", queue_budget, NEEDS_NOTHING, true },
	{ "queue: closed in its handler", queue_closed_in_handler, NEEDS_NOTHING, true },
	{ "queue: reopened in its handler", queue_reopened_in_handler, NEEDS_NOTHING, true },
	{ "queue: closed with its device", queue_closed_with_device, NEEDS_NOTHING, true },
	{ "queue: detach in its handler", queue_device_detached_in_handler, NEEDS_NOTHING, true },
	{ "queue: device dies", queue_device_dies, NEEDS_NOTHING, true },
};

#define SCENARIOS    (int)(sizeof(scenarios) / sizeof(scenarios[0]))
#define MAX_VARIANTS 4

/* What Check's numbered tests stand for. */
static struct run {
	const struct loop_driver *driver;
	const struct scenario *scenario;
	bool in_table;
} runs[MAX_VARIANTS * SCENARIOS];

static FILE *table;

static const char *refusal(const struct loop_driver *driver, enum needs needs)
{
	switch (needs) {
	case NEEDS_UNREF:
		return driver->no_unref;
	case NEEDS_FD_ERRORS:
		return driver->no_fd_errors;
	case NEEDS_LOOP_POINTER:
		return driver->no_null_loop;
	default:
		return NULL;
	}
}

static void enter_in_table(const struct run *run, const char *state, const char *text)
{
	if (!run->in_table || !table)
		return;
	fprintf(table, "%s\t%s\t%s\n", run->scenario->name, state, text);
	fflush(table);
}

START_TEST(run_scenario)
{
	const struct run *run = &runs[_i];
	const char *why_not = refusal(run->driver, run->scenario->needs);
	int64_t from = support_now_ms();

	printf("%s: %s: ", run->driver->name, run->scenario->name);
	fflush(stdout);
	subject_clean_up();
	if (!why_not)
		run->scenario->run(run->driver);
	if (why_not)
		printf("not offered by this loop: %s\n", why_not);
	else
		printf("ok, %d ms\n", (int)(support_now_ms() - from));
	fflush(stdout);
	enter_in_table(run, why_not ? "no" : "ok", why_not ? why_not : "");
}
END_TEST

/* CONFORMANCE_ONLY=signal runs what has that in its name. */
static bool is_wanted(const struct scenario *scenario)
{
	const char *only = getenv("CONFORMANCE_ONLY");

	return !only || strstr(scenario->name, only);
}

static int collect(const struct loop_driver *const drivers[], unsigned count)
{
	int n = 0;

	for (unsigned d = 0; d < count; d++)
		for (int s = 0; s < SCENARIOS; s++)
			if ((!d || scenarios[s].brief) && is_wanted(&scenarios[s]))
				runs[n++] = (struct run){ drivers[d], &scenarios[s], !d };
	return n;
}

/* What libmlx5, the simulator and the loop open only once is open before anything is counted. */
static void open_once(const struct loop_driver *const drivers[], unsigned count)
{
	struct ibv_context *ctx = support_open(0);

	ck_assert_int_eq(ibv_close_device(ctx), 0);
	for (unsigned d = 0; d < count; d++)
		ck_assert(drivers[d]->destroy(drivers[d]->create()));
}

static const struct loop_driver *const *warm_drivers;
static unsigned warm_count;

static void set_up(void)
{
	open_once(warm_drivers, warm_count);
}

/* Where the table is collected from; other than plain runs would only overwrite it. */
static FILE *open_table(const char *name)
{
	const char *file = getenv("CONFORMANCE_TABLE");
	const char *build = getenv("BUILD");
	const char *slow = getenv("TEST_SLOW_FACTOR");
	char path[4096];

	if (!file) {
		if (!build || (slow && strcmp(slow, "1") != 0))
			return NULL;
		snprintf(path, sizeof(path), "%s/test-logs/conformance-%s", build, name);
		file = path;
	}
	return fopen(file, "we");
}

int suite_run(const struct loop_driver *const drivers[], unsigned count)
{
	Suite *suite = suite_create(drivers[0]->name);
	TCase *tcase = tcase_create("conformance");
	int wanted;
	int status;

	if (support_rounds(10) < 10)
		count = 1; /* the slow runs look into our code, not into other backends */
	wanted = collect(drivers, count);
	warm_drivers = drivers;
	warm_count = count;
	table = open_table(drivers[0]->name);
	/* one that fails is never entered again: its cell stays empty, and the table says so */
	for (int i = 0; i < wanted; i++)
		enter_in_table(&runs[i], "planned", "");
	signal(SIGPIPE, SIG_IGN);
	setenv("CK_FORK", "no", 1); /* the simulated devices do not survive a fork */
	tcase_add_unchecked_fixture(tcase, set_up, NULL);
	tcase_add_loop_test(tcase, run_scenario, 0, wanted);
	suite_add_tcase(suite, tcase);
	status = support_run(suite);
	if (table)
		fclose(table);
	return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Detach in the middle of things: in each handler, by each path into it, and of each other. */
#include <errno.h>

#include "libmlx5.h"
#include "scenarios.h"
#include "subject.h"

#define INTERVAL_MS 10

enum path {
	PATH_FD,
	PATH_TIMER,
	PATH_BOTH, /* ready in one turn */
	PATHS,
};

static int interval_of(enum path path)
{
	return path == PATH_FD ? 0 : INTERVAL_MS;
}

/* Makes the paths ready without a turn. */
static void make_ready(struct subject *subject, enum path path)
{
	if (path != PATH_TIMER)
		subject_post_event(subject, 4);
	if (path == PATH_BOTH)
		stage_block(3 * INTERVAL_MS);
}

static void detach_only(struct subject *subject)
{
	subject_detach(subject);
}

static void detach_and_close(struct subject *subject)
{
	subject_detach(subject);
	subject_close(subject);
}

/* Several turns later still nothing more has been heard, and nothing more was called. */
static void check_silence(struct subject *subject)
{
	unsigned calls;

	ck_assert_ptr_null(subject->dev);
	if (subject->ctx)
		subject_close(subject);
	calls = libmlx5_calls();
	stage_run(subject->stage, 3 * INTERVAL_MS);
	subject_expect_detached(subject);
	stage_check_others(subject->stage);
	ck_assert_uint_eq(subject->errors + subject->healths, 1);
	ck_assert_uint_eq(libmlx5_calls(), calls);
}

static void fail_and_detach(struct stage *stage, enum path path, void (*act)(struct subject *))
{
	struct subject subject;

	subject_begin(&subject, stage, 0, interval_of(path));
	subject.act = act;
	libmlx5_fail(subject.ctx, EIO, 0, -1);
	make_ready(&subject, path);
	ck_assert(stage_until(stage, subject_has_error, &subject));
	libmlx5_heal();
	check_silence(&subject);
}

void detach_in_error_handler(const struct loop_driver *driver)
{
	struct stage stage;

	stage_begin(&stage, driver);
	for (int path = 0; path < PATHS; path++) {
		fail_and_detach(&stage, (enum path)path, detach_only);
		fail_and_detach(&stage, (enum path)path, detach_and_close);
	}
	stage_end(&stage);
}

static void die_and_detach(struct stage *stage, enum path path, void (*act)(struct subject *))
{
	struct subject subject;

	subject_begin(&subject, stage, 0, interval_of(path));
	subject.act = act;
	support_sim("fatal 0");
	make_ready(&subject, path);
	ck_assert(stage_until(stage, subject_has_fault, &subject));
	ck_assert_int_eq(subject.health.fault, MLX5VFIO_FW_FATAL);
	check_silence(&subject);
}

void detach_in_health_handler(const struct loop_driver *driver)
{
	struct stage stage;

	stage_begin(&stage, driver);
	for (int path = 0; path < PATHS; path++) {
		die_and_detach(&stage, (enum path)path, detach_only);
		die_and_detach(&stage, (enum path)path, detach_and_close);
	}
	stage_end(&stage);
}

static void end_the_other(struct subject *subject)
{
	if (subject->other->dev)
		detach_and_close(subject->other);
}

static bool one_has_error(void *arg)
{
	struct subject *pair = arg;

	return pair[0].errors || pair[1].errors;
}

/* Both are ready in one turn; whichever comes first ends the other, whose turn must not come. */
static void fail_and_end_other(struct stage *stage, enum path path)
{
	struct subject pair[2];

	for (unsigned i = 0; i < 2; i++) {
		subject_begin(&pair[i], stage, i, interval_of(path));
		pair[i].act = end_the_other;
		pair[i].other = &pair[1 - i];
	}
	/* every call fails: for the one that is not told, that would be told */
	for (unsigned i = 0; i < 2; i++)
		make_ready(&pair[i], path == PATH_TIMER ? PATH_TIMER : PATH_FD);
	if (path != PATH_FD)
		stage_block(3 * INTERVAL_MS);
	libmlx5_fail(NULL, EIO, 0, -1);
	ck_assert(stage_until(stage, one_has_error, pair));
	libmlx5_heal();
	stage_run(stage, 3 * INTERVAL_MS);
	ck_assert_uint_eq(pair[0].errors + pair[1].errors, 1);
	for (unsigned i = 0; i < 2; i++) {
		if (!pair[i].ctx)
			subject_expect_detached(&pair[i]);
		else
			subject_end(&pair[i]);
	}
}

void detach_of_another(const struct loop_driver *driver)
{
	struct stage stage;

	stage_begin(&stage, driver);
	for (int path = 0; path < PATHS; path++)
		fail_and_end_other(&stage, (enum path)path);
	stage_end(&stage);
}

static void on_program_timer(void *arg)
{
	struct subject *subject = arg;

	if (subject->dev)
		detach_and_close(subject);
}

/* Not in a handler of ours, but while our fd and our timer are ready in the same turn. */
void detach_in_own_callback(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	void *timer;

	stage_begin(&stage, driver);
	for (int i = 0; i < 5; i++) {
		subject_begin(&subject, &stage, 0, INTERVAL_MS);
		timer = driver->start_timer(stage.loop, 1, on_program_timer, &subject);
		make_ready(&subject, PATH_BOTH);
		while (subject.dev)
			stage_turn(&stage);
		driver->stop_timer(timer);
		stage_run(&stage, 2 * INTERVAL_MS);
		subject_expect_detached(&subject);
		ck_assert_uint_eq(subject.errors + subject.healths, 0);
	}
	stage_end(&stage);
}

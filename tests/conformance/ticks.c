/* SPDX-License-Identifier: BSD-2-Clause */
/* The rhythm: together, at multiples of the period, never in bursts. */
#include <errno.h>

#include "scenarios.h"
#include "subject.h"

#define DEVICES 4

static uint64_t all_ticks(const struct subject subjects[DEVICES])
{
	uint64_t ticks = 0;

	for (int i = 0; i < DEVICES; i++)
		ticks += subject_stats(&subjects[i]).ticks;
	return ticks;
}

static void begin_all(struct subject subjects[DEVICES], struct stage *stage, int interval_ms)
{
	for (unsigned i = 0; i < DEVICES; i++)
		subject_begin(&subjects[i], stage, i, interval_ms);
}

static void end_all(struct subject subjects[DEVICES])
{
	for (unsigned i = 0; i < DEVICES; i++)
		subject_end(&subjects[i]);
}

/* One wakeup a tick, not one for each device. */
void ticks_together(const struct loop_driver *driver)
{
	const int interval_ms = 80;
	const uint64_t rounds = 10;
	struct subject subjects[DEVICES];
	uint64_t turns = 0, before, after, started[DEVICES];
	struct stage stage;

	stage_begin(&stage, driver);
	for (unsigned i = 0; i < DEVICES; i++) {
		subject_begin(&subjects[i], &stage, i, interval_ms);
		stage_run(&stage, interval_ms / DEVICES);
	}
	/* from here on all have been set together */
	subject_until_ticks(&subjects[DEVICES - 1], 1);
	for (int i = 0; i < DEVICES; i++)
		started[i] = subject_stats(&subjects[i]).ticks;
	before = after = all_ticks(subjects);
	while (all_ticks(subjects) < before + rounds * DEVICES) {
		stage_turn(&stage);
		turns += all_ticks(subjects) != after;
		after = all_ticks(subjects);
	}
	/* timers count in milliseconds: now and then one falls on the other side of a boundary */
	ck_assert_uint_le(turns, 2 * rounds);
	for (int i = 0; i < DEVICES; i++) {
		uint64_t ticks = subject_stats(&subjects[i]).ticks - started[i];

		ck_assert_uint_ge(ticks, rounds - 1);
		ck_assert_uint_le(ticks, rounds + 1);
	}
	end_all(subjects);
	stage_end(&stage);
}

/* After a callback, or a stopped process, that took several periods there is one tick. */
void ticks_after_a_block(const struct loop_driver *driver)
{
	const int interval_ms = 100;
	struct subject subjects[DEVICES];
	int64_t from, to, multiples;
	struct stage stage;
	uint64_t before[DEVICES];

	stage_begin(&stage, driver);
	begin_all(subjects, &stage, interval_ms);
	for (int i = 0; i < DEVICES; i++)
		subject_until_ticks(&subjects[i], 1);
	for (int i = 0; i < DEVICES; i++)
		before[i] = subject_stats(&subjects[i]).ticks;
	stage_block(3 * interval_ms + interval_ms / 2);
	from = support_now_ms();
	stage_run(&stage, 2 * interval_ms);
	to = support_now_ms();
	multiples = to / interval_ms - from / interval_ms;
	for (int i = 0; i < DEVICES; i++) {
		uint64_t ticks = subject_stats(&subjects[i]).ticks - before[i];

		ck_assert_uint_ge(ticks, 2);
		ck_assert_int_le((int64_t)ticks, 1 + multiples);
	}
	end_all(subjects);
	stage_end(&stage);
}

struct late {
	struct subject *subject;
	int64_t due; /* the first tick, at the earliest; 0: not attached yet */
};

static void attach_after_a_long_callback(void *arg)
{
	struct late *late = arg;

	if (late->due)
		return;
	stage_block(500);
	late->due = (support_now_ms() / 50 + 1) * 50;
	subject_attach(late->subject, 50);
}

/*
 * A loop's cached time is half a second behind when the device is attached in a callback. The first
 * tick must come a period after that and not at once, nor half a second later.
 */
void ticks_set_late(const struct loop_driver *driver)
{
	struct subject subject;
	struct late late = { &subject, 0 };
	struct stage stage;
	void *timer;

	stage_begin(&stage, driver);
	subject_open(&subject, &stage, 0);
	timer = driver->start_timer(stage.loop, 1, attach_after_a_long_callback, &late);
	while (!late.due)
		stage_turn(&stage);
	driver->stop_timer(timer);
	while (!subject_stats(&subject).ticks)
		stage_turn(&stage);
	ck_assert_int_ge(support_now_ms(), late.due);
	subject_until_ticks(&subject, 2);
	ck_assert_int_le(support_now_ms(), late.due + 400);
	subject_end(&subject);
	stage_end(&stage);
}

static void refuse(struct subject *subject, int ms)
{
	ck_assert_int_eq(mlx5vfio_set_interval(subject->dev, ms), -EINVAL);
}

void ticks_limits(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	uint64_t ticks;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	refuse(&subject, -1);
	refuse(&subject, 1);
	refuse(&subject, 9);
	refuse(&subject, 3600001);
	subject_until_ticks(&subject, 3); /* nothing changed */

	ck_assert_int_eq(mlx5vfio_set_interval(subject.dev, 0), 0);
	ticks = subject_stats(&subject).ticks;
	stage_run(&stage, 100);
	ck_assert_uint_eq(subject_stats(&subject).ticks, ticks);
	subject_post_event(&subject, 4);
	subject_until_given(&subject, 4);

	ck_assert_int_eq(mlx5vfio_set_interval(subject.dev, 3600000), 0);
	stage_run(&stage, 50);
	ck_assert_uint_eq(subject_stats(&subject).ticks, ticks);
	ck_assert_int_eq(mlx5vfio_set_interval(subject.dev, 10), 0);
	subject_until_ticks(&subject, ticks + 3);
	subject_end(&subject);
	stage_end(&stage);
}

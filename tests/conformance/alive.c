/* SPDX-License-Identifier: BSD-2-Clause */
/* What keeps the loop running, and what does not. */
#include <errno.h>

#include "libmlx5.h"
#include "scenarios.h"
#include "subject.h"

static bool is_alive(struct stage *stage)
{
	return stage->driver->turn(stage->loop, 0);
}

static void check_run_returns(struct stage *stage)
{
	ck_assert_msg(!is_alive(stage), "something keeps the loop alive");
	stage->driver->run(stage->loop);
}

/* An unreferenced device is served like any other while something else keeps the loop running. */
static void check_served(struct subject *subject)
{
	uint64_t given = support_stats(subject->index).pages_given;

	support_sim("page-request %u 4", subject->index);
	subject_until_given(subject, given + 4);
	subject_until_ticks(subject, subject_stats(subject).ticks + 2);
}

/* The count is right also when an unreferenced device is detached while all of it is active. */
static void end_unreferenced(struct stage *stage)
{
	struct subject subject;

	subject_begin(&subject, stage, 1, 10);
	subject_until_ticks(&subject, 1);
	ck_assert_int_eq(mlx5vfio_unref(subject.dev), 0);
	subject_end(&subject);
}

void alive_unref(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	end_unreferenced(&stage);
	subject_begin(&subject, &stage, 0, 10);
	ck_assert_int_eq(mlx5vfio_unref(subject.dev), 0);
	ck_assert_int_eq(mlx5vfio_unref(subject.dev), 0); /* no counting */
	check_served(&subject);
	/* the fd is unwatched and watched again, the timer stopped and started */
	libmlx5_fail(subject.ctx, EIO, 0, 3);
	subject_until_ticks(&subject, subject_stats(&subject).ticks + 5);
	libmlx5_heal();
	ck_assert_int_eq(mlx5vfio_set_interval(subject.dev, 0), 0);
	ck_assert_int_eq(mlx5vfio_set_interval(subject.dev, 10), 0);
	check_served(&subject);

	stage_alone(&stage);
	is_alive(&stage); /* the turn that libuv needs to let go of the program's own watchers */
	check_run_returns(&stage);
	ck_assert_int_eq(mlx5vfio_ref(subject.dev), 0);
	ck_assert_int_eq(mlx5vfio_ref(subject.dev), 0);
	ck_assert(is_alive(&stage));
	ck_assert_int_eq(mlx5vfio_unref(subject.dev), 0);
	check_run_returns(&stage);
	support_sim("fatal 0");
	ck_assert_int_eq(mlx5vfio_ref(subject.dev), 0);
	ck_assert(stage_until(&stage, subject_has_fault, &subject));
	ck_assert_int_eq(mlx5vfio_unref(subject.dev), 0);
	check_run_returns(&stage);
	subject_end(&subject);
	stage_end(&stage);
}

void alive_unref_refused(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	int expected = driver->no_unref ? -ENOTSUP : 0;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	ck_assert_int_eq(mlx5vfio_unref(subject.dev), expected);
	ck_assert_int_eq(mlx5vfio_ref(subject.dev), expected);
	ck_assert_int_eq(mlx5vfio_unref(NULL), -EINVAL);
	ck_assert_int_eq(mlx5vfio_ref(NULL), -EINVAL);
	subject_end(&subject);
	stage_end(&stage);
}

static void end_the_last(struct subject *subject)
{
	subject_detach(subject);
}

/* The device alone keeps the loop running until it is detached, here in its own handler. */
void alive_until_detached(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	stage_alone(&stage);
	subject_begin(&subject, &stage, 0, 10);
	subject_until_ticks(&subject, 2);
	ck_assert(is_alive(&stage));
	subject.act = end_the_last;
	support_sim("fatal 0");
	driver->run(stage.loop);
	ck_assert_uint_eq(subject.faults, 1);
	ck_assert_uint_eq(subject.detached, 1);
	subject_close(&subject);
	stage_end(&stage);
}

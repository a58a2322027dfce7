/* SPDX-License-Identifier: BSD-2-Clause */
/* Closed by the library, on a thread of its own, while the loop goes on. */
#include <errno.h>

#include "libmlx5.h"
#include "scenarios.h"
#include "subject.h"

static void check_closed(struct subject *subject)
{
	struct mlx5vfio_sim_stats sim;

	subject_expect_detached(subject);
	ck_assert_uint_eq(subject->closed, 1);
	ck_assert_ptr_null(subject->dev);
	sim = support_stats(subject->index);
	ck_assert_uint_eq(sim.violations, 0);
	ck_assert_uint_eq(sim.dma_maps, 0);
}

void close_in_the_background(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	unsigned calls;

	stage_begin(&stage, driver);
	for (int i = 0; i < 3; i++) {
		subject_begin(&subject, &stage, 0, 10);
		subject_until_ticks(&subject, 1);
		calls = libmlx5_calls();
		subject_close_by_library(&subject);
		ck_assert_int_eq(mlx5vfio_close(subject.dev), -EALREADY);
		check_closed(&subject);
		ck_assert_uint_eq(libmlx5_calls(), calls);
		ck_assert_uint_eq(subject.errors + subject.healths, 0);
	}
	ck_assert_int_eq(mlx5vfio_close(NULL), -EINVAL);
	stage_end(&stage);
}

/* What a program does that fails over: the dead device is got rid of, and nobody waits for it. */
void close_in_health_handler(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	subject.act = subject_close_by_library;
	support_sim("fatal 0");
	ck_assert(stage_until(&stage, subject_has_fault, &subject));
	check_closed(&subject);
	ck_assert_uint_eq(subject.errors, 0);
	ck_assert_uint_eq(subject.healths, 1);
	support_sim("heal 0");
	stage_end(&stage);
}

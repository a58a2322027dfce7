/* SPDX-License-Identifier: BSD-2-Clause */
/* A device dies: told once, never touched again, and nothing else on the loop notices. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmlx5.h"
#include "scenarios.h"
#include "subject.h"

struct death {
	const char *command;
	enum mlx5vfio_fault fault;
};

static const struct death deaths[] = {
	{ "pci-offline 0", MLX5VFIO_PCI_OFFLINE }, { "nic-disabled 0", MLX5VFIO_NIC_DISABLED },
	{ "nic-reset 0", MLX5VFIO_NIC_RESET },     { "fatal 0 0x1", MLX5VFIO_FW_FATAL },
	{ "freeze 0", MLX5VFIO_STALLED },
};

/* Nothing of it is left on the loop: no call, no second word, and a run returns by itself. */
static void check_dead(struct subject *subject)
{
	struct stage *stage = subject->stage;
	unsigned calls = libmlx5_calls();

	stage_run(stage, 100);
	ck_assert_uint_eq(libmlx5_calls(), calls);
	ck_assert_uint_eq(subject->healths, 1);
	ck_assert_uint_eq(subject->faults, 1);
	ck_assert_uint_eq(subject->errors, 0);
	ck_assert_uint_eq(subject->detached, 0);
	stage_check_others(stage);
	stage_alone(stage);
	stage->driver->turn(stage->loop, 0);
	stage->driver->run(stage->loop);
}

static void die(const struct loop_driver *driver, const struct death *death)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	ck_assert(mlx5vfio_guarded(subject.dev));
	subject_until_ticks(&subject, 1);
	support_sim("%s", death->command);
	ck_assert(stage_until(&stage, subject_has_fault, &subject));
	ck_assert_int_eq(subject.health.fault, death->fault);
	check_dead(&subject);
	subject_end(&subject);
	stage_end(&stage);
}

void faults_each(const struct loop_driver *driver)
{
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
		die(driver, &deaths[i]);
}

/* Attaching succeeds; the first turn tells, to the handlers that were set after the attach. */
void faults_before_attach(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	unsigned calls;

	stage_begin(&stage, driver);
	subject_open(&subject, &stage, 0);
	support_sim("nic-disabled 0");
	calls = libmlx5_calls();
	subject_attach(&subject, MLX5VFIO_DEFAULT_INTERVAL);
	ck_assert_uint_eq(subject.faults, 0);
	ck_assert(stage_until(&stage, subject_has_fault, &subject));
	ck_assert_int_eq(subject.health.fault, MLX5VFIO_NIC_DISABLED);
	ck_assert_uint_eq(libmlx5_calls(), calls);
	check_dead(&subject);
	subject_end(&subject);
	stage_end(&stage);
}

/* Turns with stderr caught, and returns what was written there. */
static const char *run_with_stderr(struct stage *stage, int ms)
{
	static char text[4096];
	int saved = dup(STDERR_FILENO);
	int ends[2];
	ssize_t size;

	ck_assert_int_ge(saved, 0);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	fflush(stderr);
	dup2(ends[1], STDERR_FILENO);
	stage_run(stage, ms);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	size = read(ends[0], text, sizeof(text) - 1);
	text[size > 0 ? size : 0] = '\0';
	close(ends[0]);
	close(ends[1]);
	return text;
}

void faults_without_handler(const struct loop_driver *driver)
{
	struct subject dying, failing;
	const char *text, *end;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&dying, &stage, 0, 10);
	subject_begin(&failing, &stage, 1, 10);
	mlx5vfio_set_handlers(dying.dev, NULL, NULL);
	mlx5vfio_set_handlers(failing.dev, NULL, NULL);
	support_sim("fatal 0");
	libmlx5_fail(failing.ctx, EIO, 0, -1);
	text = run_with_stderr(&stage, 300);
	libmlx5_heal();
	ck_assert_ptr_nonnull(strstr(text, "mlx5vfio: "));
	end = strchr(text, '\n');
	ck_assert_msg(end && !end[1], "not one line: \"%s\"", text);
	ck_assert_uint_eq(subject_stats(&failing).reports, 1);
	subject_detach(&dying);
	subject_detach(&failing);
	subject_close(&dying);
	subject_close(&failing);
	driver->turn(stage.loop, 0);
	ck_assert_uint_eq(dying.detached + failing.detached, 0);
	stage_end(&stage);
}

/* Who asks finds out at once; .health still hears of it, once, from the loop. */
void faults_asked_for(const struct loop_driver *driver)
{
	struct mlx5vfio_health health;
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	ck_assert_int_eq(mlx5vfio_get_health(subject.dev, &health), 0);
	ck_assert_int_eq(health.fault, MLX5VFIO_OK);
	support_sim("fatal 0 0x7");
	ck_assert_int_eq(mlx5vfio_get_health(subject.dev, &health), 0);
	ck_assert_int_eq(health.fault, MLX5VFIO_FW_FATAL);
	ck_assert_uint_eq(health.synd, 7);
	ck_assert_uint_eq(subject.faults, 0);
	ck_assert(stage_until(&stage, subject_has_fault, &subject));
	ck_assert_uint_eq(subject.health.synd, 7);
	ck_assert_int_eq(mlx5vfio_get_health(subject.dev, NULL), -EINVAL);
	ck_assert_int_eq(mlx5vfio_get_health(NULL, &health), -EINVAL);
	check_dead(&subject);
	subject_end(&subject);
	stage_end(&stage);
}

void faults_beside_a_healthy_one(const struct loop_driver *driver)
{
	struct subject dying, healthy;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&dying, &stage, 0, 10);
	subject_begin(&healthy, &stage, 1, 10);
	support_sim("page-request 1 4 50 spaced every 2ms");
	subject_until_given(&healthy, 20);
	support_sim("pci-offline 0");
	ck_assert(stage_until(&stage, subject_has_fault, &dying));
	subject_until_given(&healthy, 200);
	subject_until_ticks(&healthy, subject_stats(&healthy).ticks + 5);
	ck_assert_uint_eq(healthy.errors + healthy.healths, 0);
	ck_assert_uint_eq(dying.healths, 1);
	subject_end(&dying);
	subject_post_event(&healthy, 4);
	subject_until_given(&healthy, 204);
	subject_end(&healthy);
	stage_end(&stage);
}

static bool warned(void *arg)
{
	const struct subject *subject = arg;

	return subject->healths >= 1;
}

static bool warning_cleared(void *arg)
{
	const struct subject *subject = arg;

	return subject->healths >= 2;
}

/* A syndrome without the recovery bit is told, and so is its end; the device goes on. */
void faults_warning(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	support_sim("syndrome 0 0x8");
	ck_assert(stage_until(&stage, warned, &subject));
	ck_assert(subject.health.warning);
	ck_assert_uint_eq(subject.health.synd, 8);
	subject_post_event(&subject, 4);
	subject_until_given(&subject, 4);
	subject_until_ticks(&subject, subject_stats(&subject).ticks + 3);
	ck_assert_uint_eq(subject.healths, 1);
	support_sim("syndrome 0 0");
	ck_assert(stage_until(&stage, warning_cleared, &subject));
	ck_assert(!subject.health.warning);
	ck_assert_uint_eq(subject.faults, 0);
	subject_end(&subject);
	stage_end(&stage);
}

static void never(void *arg)
{
	unsigned *calls = arg;

	++*calls;
}

static void never_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)dev;
	(void)error;
	never(arg);
}

static void never_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	(void)dev;
	(void)health;
	never(arg);
}

/* The old arg is freed right after: who still used it would read freed memory. */
void handlers_replaced(const struct loop_driver *driver)
{
	static const struct mlx5vfio_handlers old = {
		.health = never_health,
		.error = never_error,
		.detached = never,
	};
	unsigned *arg = calloc(1, sizeof(*arg));
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	mlx5vfio_set_handlers(subject.dev, &old, arg);
	subject_until_ticks(&subject, 1);
	ck_assert_uint_eq(*arg, 0);
	subject_listen(&subject);
	free(arg);
	libmlx5_fail(subject.ctx, EIO, 0, 1);
	ck_assert(stage_until(&stage, subject_has_error, &subject));
	support_sim("fatal 0");
	ck_assert(stage_until(&stage, subject_has_fault, &subject));
	subject_end(&subject);
	stage_end(&stage);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device sends is handled, whoever wakes up and whatever gets lost on the way. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "libmlx5.h"
#include "scenarios.h"
#include "subject.h"

void events_page_requests(const struct loop_driver *driver)
{
	int requests = support_rounds(300);
	struct mlx5vfio_sim_stats sim;
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	support_sim("page-request 0 16 %d spaced", requests);
	subject_until_given(&subject, (uint64_t)requests * 16);
	support_sim("reclaim 0 4 10 spaced");
	support_sim("page-request 0 1 1 spaced");
	subject_until_given(&subject, (uint64_t)requests * 16 + 1);
	sim = support_stats(0);
	ck_assert_uint_eq(sim.pages_given, sim.pages_requested);
	ck_assert_uint_eq(sim.pages_returned, sim.pages_asked_back);
	ck_assert_uint_eq(subject.errors, 0);
	ck_assert_uint_ge(subject_stats(&subject).wakeups, 1);
	ck_assert_uint_eq(subject_stats(&subject).ticks, 0);
	subject_end(&subject);
	stage_end(&stage);
}

static bool all_consumed(void *arg)
{
	const struct subject *subject = arg;
	struct mlx5vfio_sim_stats sim = support_stats(subject->index);

	return !sim.requests_pending && sim.consumed == sim.eqes;
}

/* libmlx5 drops the third request of a batch for good and says EINVAL: no entry may stay behind. */
void events_burst(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	uint64_t given;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 50);
	subject_post_event(&subject, 4); /* libmlx5 gets its memory for what follows */
	subject_until_given(&subject, 4);
	support_sim("page-request 0 4 12");
	ck_assert(stage_until(&stage, subject_has_error, &subject));
	ck_assert_int_eq(subject.error, -EINVAL);
	ck_assert_msg(stage_until(&stage, all_consumed, &subject), "entries stay behind");
	ck_assert_uint_eq(subject.errors, 1);
	subject_until_ticks(&subject, subject_stats(&subject).ticks + 2);
	given = support_stats(0).pages_given;
	support_sim("page-request 0 4");
	subject_until_given(&subject, given + 4);
	ck_assert_uint_eq(subject.errors, 1);
	subject_end(&subject);
	stage_end(&stage);
}

void events_lost_interrupt(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 50);
	support_sim("lose-interrupt 0 1");
	support_sim("page-request 0 4");
	subject_until_given(&subject, 4);
	ck_assert_uint_ge(subject_stats(&subject).ticks, 1);
	ck_assert_uint_eq(subject.errors, 0);
	subject_end(&subject);
	stage_end(&stage);
}

static bool woke_up(void *arg)
{
	return subject_stats(arg).wakeups > 0;
}

void events_spurious_interrupt(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	support_sim("spurious 0");
	ck_assert(stage_until(&stage, woke_up, &subject));
	stage_run(&stage, 20);
	ck_assert_uint_eq(subject.errors, 0);
	ck_assert_uint_eq(subject_stats(&subject).wakeups, 1);
	subject_post_event(&subject, 4);
	subject_until_given(&subject, 4);
	subject_end(&subject);
	stage_end(&stage);
}

/* A verb reads the fd and handles what it finds: the loop wakes up for nothing, or not at all. */
static void *allocate_pd(void *arg)
{
	struct subject *subject = arg;
	struct ibv_pd *pd = ibv_alloc_pd(subject->ctx);

	if (pd)
		ibv_dealloc_pd(pd);
	return pd;
}

void events_taken_by_a_command(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	pthread_t thread;
	void *pd;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	for (int i = 1; i <= support_rounds(20); i++) {
		subject_post_event(&subject, 4);
		ck_assert_int_eq(pthread_create(&thread, NULL, allocate_pd, &subject), 0);
		ck_assert_int_eq(pthread_join(thread, &pd), 0);
		ck_assert_ptr_nonnull(pd);
		subject_until_given(&subject, (uint64_t)i * 4);
		stage_turn(&stage);
	}
	ck_assert_uint_eq(subject.errors, 0);
	subject_end(&subject);
	stage_end(&stage);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
	(void)number;
	alarms = alarms + 1;
}

/* Without SA_RESTART: every call that can be interrupted is. */
static timer_t storm_begin(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec every_ms = { { 0, 1000000 }, { 0, 1000000 } };
	timer_t timer;

	alarms = 0;
	ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
	ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	ck_assert_int_eq(timer_settime(timer, 0, &every_ms, NULL), 0);
	return timer;
}

static void storm_end(timer_t timer)
{
	timer_delete(timer);
	signal(SIGALRM, SIG_IGN);
}

void events_signal_storm(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	timer_t timer;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	timer = storm_begin();
	support_sim("page-request 0 4 20 spaced every 5ms");
	subject_until_given(&subject, 80);
	stage_run(&stage, 50);
	storm_end(timer);
	ck_assert_int_gt(alarms, 10);
	ck_assert_uint_eq(subject.errors, 0);
	ck_assert_uint_eq(subject_stats(&subject).errors, 0);
	subject_end(&subject);
	stage_end(&stage);
}

/* A program built with an older or a newer header than the library. */
void events_statistics(const struct loop_driver *driver)
{
	struct {
		struct mlx5vfio_stats stats;
		uint64_t newer[2];
	} large;
	struct mlx5vfio_stats small;
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	subject_post_event(&subject, 4);
	subject_until_given(&subject, 4);
	subject_until_ticks(&subject, 2);

	memset(&small, 0xff, sizeof(small));
	mlx5vfio_get_stats(subject.dev, &small, offsetof(struct mlx5vfio_stats, ticks));
	ck_assert_uint_eq(small.wakeups, subject_stats(&subject).wakeups);
	ck_assert_uint_eq(small.ticks, UINT64_MAX);

	memset(&large, 0xff, sizeof(large));
	mlx5vfio_get_stats(subject.dev, &large.stats, sizeof(large));
	ck_assert_uint_eq(large.newer[0] | large.newer[1], 0);
	ck_assert_uint_ge(large.stats.ticks, 2);
	ck_assert_uint_ge(large.stats.calls, large.stats.wakeups);
	ck_assert_uint_ge(large.stats.samples, large.stats.ticks);
	ck_assert_uint_eq(large.stats.errors + large.stats.retries + large.stats.reports, 0);
	subject_end(&subject);
	stage_end(&stage);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; tsan valgrind show timeout=300 seconds=11 */
/*
 * More events than an event queue holds: each comes once and in its order, however slow the program
 * is, and the loop's other business goes on.
 */
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "test_eq.h"

#define BUDGET 16

/* The 24 bits of the consumer index, and some more. */
#define BEYOND_24_BITS ((1 << 24) + 100000)

struct storm {
	struct mlx5vfio_eq *eq;
	enum mlx5vfio_event_type type;
	int count;
	int nap_after; /* a slow consumer sleeps for a while every so many events; 0: a quick one */
	int in_turn;   /* events since the turn began */
};

static void nap(void)
{
	const struct timespec pause = { .tv_nsec = 200000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/*
 * The simulator numbers them in the second word. By if: Check writes a line for each assertion that
 * holds, which for millions is most of the time.
 */
static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	struct storm *storm = arg;

	if (eq != storm->eq)
		ck_abort_msg("an event of another queue");
	if (event->type != storm->type || event->raw[1] != (uint32_t)storm->count)
		ck_abort_msg("event 0x%x number %u instead of %d", event->type, event->raw[1],
			     storm->count);
	storm->count++;
	storm->in_turn++;
	if (storm->nap_after && storm->count % storm->nap_after == 0)
		nap();
}

static void run_storm(unsigned log_size, unsigned budget, int events, int nap_after)
{
	struct storm storm = { .type = MLX5VFIO_EVENT_GENERAL, .nap_after = nap_after };
	struct mlx5vfio_stats stats;
	struct test_loop loop;
	int64_t start;

	test_loop_start(&loop, LOOP_UV, 0);
	storm.eq = test_eq_open(&loop, log_size, budget, BIT(MLX5VFIO_EVENT_GENERAL), on_event,
				&storm);
	start = support_now_ms();
	support_sim("events 0 0x22 %d", events);
	test_turn_until(&loop, &storm.count, events);
	printf("%d events through %d entries, %s consumer: none lost, none twice, %lld ms\n",
	       events, 1 << log_size, nap_after ? "slow" : "quick",
	       (long long)(support_now_ms() - start));
	test_turn_for(&loop, TEST_SILENCE);
	ck_assert_int_eq(storm.count, events);
	mlx5vfio_get_stats(loop.dev, &stats, sizeof(stats));
	ck_assert_uint_eq(stats.events, (uint64_t)events);
	mlx5vfio_eq_close(storm.eq);
	test_loop_finish(&loop, 0, 0);
}

START_TEST(slow_consumer)
{
	run_storm(8, 0, support_rounds(1000000), 500);
}
END_TEST

START_TEST(smallest_queue)
{
	run_storm(4, 3, support_rounds(200000), 500);
}
END_TEST

/* Fewer events would show nothing; test_eq_ring wraps every variant. */
START_TEST(consumer_index_wraps)
{
	if (support_rounds(100) == 100)
		run_storm(16, 4096, BEYOND_24_BITS, 0);
}
END_TEST

/* libmlx5 has one UAR page for all, so that they write the same doorbells. */
START_TEST(two_queues_on_one_page)
{
	static const enum mlx5vfio_event_type types[] = {
		MLX5VFIO_EVENT_GENERAL,
		MLX5VFIO_EVENT_TEMPERATURE_WARNING,
	};
	int events = support_rounds(20000), i;
	struct storm storms[2];
	struct test_loop loop;

	test_loop_start(&loop, LOOP_POLL, 0);
	for (i = 0; i < 2; i++) {
		storms[i] = (struct storm){ .type = types[i], .nap_after = i ? 700 : 0 };
		storms[i].eq = test_eq_open(&loop, 5, 0, BIT(types[i]), on_event, &storms[i]);
	}
	for (i = 0; i < 2; i++)
		support_sim("events 0 0x%x %d", types[i], events);
	test_turn_until(&loop, &storms[0].count, events);
	test_turn_until(&loop, &storms[1].count, events);
	test_turn_for(&loop, TEST_SILENCE);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(storms[i].count, events);
		mlx5vfio_eq_close(storms[i].eq);
	}
	test_loop_finish(&loop, 0, 0);
}
END_TEST

/* What else the program has in its loop while a storm goes on. */
struct business {
	struct storm storm;
	uv_poll_t watcher;
	uv_timer_t timer;
	uv_check_t turn_end;
	bool watcher_ran;
	int turns, ticks;
};

static void on_watcher(uv_poll_t *poll, int status, int events)
{
	struct business *business = poll->data;

	(void)status;
	(void)events;
	business->watcher_ran = true;
}

static void on_tick(uv_timer_t *timer)
{
	struct business *business = timer->data;

	business->ticks++;
}

static void on_turn_end(uv_check_t *check)
{
	struct business *business = check->data;

	ck_assert_int_le(business->storm.in_turn, BUDGET);
	if (business->storm.in_turn) {
		business->turns++;
		ck_assert(business->watcher_ran);
	}
	business->storm.in_turn = 0;
	business->watcher_ran = false;
}

static void start_business(struct business *business, uv_loop_t *loop, int fd)
{
	business->watcher.data = business->timer.data = business->turn_end.data = business;
	uv_poll_init(loop, &business->watcher, fd);
	uv_poll_start(&business->watcher, UV_READABLE, on_watcher);
	uv_timer_init(loop, &business->timer);
	uv_timer_start(&business->timer, on_tick, 1, 1);
	uv_check_init(loop, &business->turn_end);
	uv_check_start(&business->turn_end, on_turn_end);
}

static void end_business(struct business *business)
{
	uv_close((uv_handle_t *)&business->watcher, NULL);
	uv_close((uv_handle_t *)&business->timer, NULL);
	uv_close((uv_handle_t *)&business->turn_end, NULL);
}

START_TEST(budget)
{
	struct business business = { .storm.type = MLX5VFIO_EVENT_GENERAL };
	int events = support_rounds(200000), fd = eventfd(1, EFD_CLOEXEC);
	struct test_loop loop;
	int64_t ms;

	test_loop_start(&loop, LOOP_UV, 0);
	start_business(&business, &loop.uv, fd);
	business.storm.eq = test_eq_open(&loop, 8, BUDGET, BIT(MLX5VFIO_EVENT_GENERAL), on_event,
					 &business.storm);
	ms = -support_now_ms();
	support_sim("events 0 0x22 %d", events);
	test_turn_until(&loop, &business.storm.count, events);
	ms += support_now_ms();
	printf("%d events, %d a turn at most: another watcher ran in each of %d turns, a timer of "
	       "1 ms %d times in %lld ms\n",
	       events, BUDGET, business.turns, business.ticks, (long long)ms);
	ck_assert_int_ge(business.turns, events / BUDGET);
	ck_assert_int_ge(business.ticks, (int)ms / 20);
	end_business(&business);
	mlx5vfio_eq_close(business.storm.eq);
	test_loop_finish(&loop, 0, 0);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("eq storm");
	TCase *tcase = tcase_create("storm");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, test_clean_up);
	tcase_add_test(tcase, slow_consumer);
	tcase_add_test(tcase, smallest_queue);
	tcase_add_test(tcase, consumer_index_wraps);
	tcase_add_test(tcase, two_queues_on_one_page);
	tcase_add_test(tcase, budget);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

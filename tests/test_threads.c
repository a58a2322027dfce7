/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; tsan valgrind timeout=300 */
/*
 * Verbs in one thread beside the loop in another, and several loops in several threads. Check's
 * assertions belong to the main thread: the others only count what went wrong.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "support/support.h"

#define LOOPS    4
#define LIMIT_MS 200000
#define MR_SIZE  4096
#define PAGES    8
#define TURN_MS  10
#define TICK_MS  10

/* A device on a loop of its own, and what its handlers heard. */
struct served {
	unsigned index;
	struct ibv_context *ctx;
	struct mlx5vfio *dev;
	uv_loop_t loop;
	uv_timer_t limit; /* of a turn */
	unsigned errors, healths, detached;
	int rounds, failures;
};

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	struct served *served = arg;

	(void)dev;
	(void)error;
	served->errors++;
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct served *served = arg;

	(void)dev;
	(void)health;
	served->healths++;
}

static void on_detached(void *arg)
{
	struct served *served = arg;

	served->detached++;
}

static void on_limit(uv_timer_t *timer)
{
	(void)timer;
}

static void loop_begin(struct served *served)
{
	uv_loop_init(&served->loop);
	uv_timer_init(&served->loop, &served->limit);
	uv_timer_start(&served->limit, on_limit, TURN_MS, TURN_MS);
}

/* The number of things that were not as they should be. */
static int loop_end(struct served *served)
{
	uv_close((uv_handle_t *)&served->limit, NULL);
	uv_run(&served->loop, UV_RUN_NOWAIT);
	return (uv_loop_close(&served->loop) != 0) + (served->detached != 1) +
	       (served->errors != 0) + (served->healths != 0);
}

static bool attach(struct served *served)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
		.detached = on_detached,
	};

	served->detached = 0;
	served->dev = mlx5vfio_uv_attach(&served->loop, served->ctx);
	if (!served->dev)
		return false;
	mlx5vfio_set_handlers(served->dev, &handlers, served);
	return mlx5vfio_set_interval(served->dev, TICK_MS) == 0;
}

/* Signals handled in a thread that runs verbs make them fail. */
static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

struct worker {
	struct ibv_context *ctx;
	int rounds, failures;
	atomic_bool done;
};

static bool run_verbs(struct ibv_context *ctx, void *buffer)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;
	bool ok;

	if (!pd)
		return false;
	mr = ibv_reg_mr(pd, buffer, MR_SIZE, IBV_ACCESS_LOCAL_WRITE);
	ok = mr && !ibv_dereg_mr(mr);
	return !ibv_dealloc_pd(pd) && ok;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	void *buffer = NULL;

	block_signals();
	if (posix_memalign(&buffer, MR_SIZE, MR_SIZE))
		abort();
	memset(buffer, 0, MR_SIZE);
	for (int i = 0; i < worker->rounds; i++)
		worker->failures += !run_verbs(worker->ctx, buffer);
	free(buffer);
	atomic_store(&worker->done, true);
	return NULL;
}

/* libmlx5 loses the memory of a command that is in flight when the device is closed. */
static bool let_finish(struct served *served, int64_t limit)
{
	while (mlx5vfio_sim_settle(served->index, 0) && support_now_ms() < limit)
		uv_run(&served->loop, UV_RUN_ONCE);
	return mlx5vfio_sim_settle(served->index, 0) == 0;
}

static void close_checked(struct ibv_context *ctx, unsigned index)
{
	struct mlx5vfio_sim_stats stats;

	ck_assert_int_eq(ibv_close_device(ctx), 0);
	stats = support_stats(index);
	ck_assert_uint_eq(stats.violations, 0);
	ck_assert_uint_eq(stats.dma_maps, 0);
}

START_TEST(commands_beside_the_loop)
{
	struct served served = { .ctx = support_open(0) };
	struct worker worker = { .ctx = served.ctx, .rounds = support_rounds(10000) };
	int64_t limit = support_now_ms() + LIMIT_MS;
	struct mlx5vfio_sim_stats stats;
	pthread_t thread;

	loop_begin(&served);
	ck_assert(attach(&served));
	support_sim("page-request 0 %d 1000000 spaced every 1ms", PAGES);
	ck_assert_int_eq(pthread_create(&thread, NULL, work, &worker), 0);
	while (!atomic_load(&worker.done) && support_now_ms() < limit)
		uv_run(&served.loop, UV_RUN_ONCE);
	ck_assert_msg(atomic_load(&worker.done), "the commands do not end");
	pthread_join(thread, NULL);
	support_sim("requests-stop 0");
	ck_assert(let_finish(&served, limit));
	stats = support_stats(0);
	ck_assert_uint_ge(stats.pages_requested, PAGES);
	ck_assert_uint_eq(stats.pages_given, stats.pages_requested);
	ck_assert_int_eq(worker.failures, 0);
	mlx5vfio_detach(served.dev);
	close_checked(served.ctx, 0);
	ck_assert_int_eq(loop_end(&served), 0);
}
END_TEST

/* Attaches, gives firmware its pages, detaches; again and again, for the sake of what is shared. */
static void *serve(void *arg)
{
	struct served *served = arg;
	int64_t limit = support_now_ms() + LIMIT_MS;
	struct mlx5vfio_sim_stats stats = { 0 };

	block_signals();
	for (int i = 1; i <= served->rounds; i++) {
		char line[64];

		loop_begin(served);
		if (!attach(served))
			abort();
		snprintf(line, sizeof(line), "page-request %u %d", served->index, PAGES);
		served->failures += mlx5vfio_sim_control(line, NULL, 0) != 0;
		do {
			uv_run(&served->loop, UV_RUN_ONCE);
			mlx5vfio_sim_get_stats(served->index, &stats);
		} while (stats.pages_given < (uint64_t)i * PAGES && support_now_ms() < limit);
		served->failures += !let_finish(served, limit);
		mlx5vfio_detach(served->dev);
		served->failures += loop_end(served);
	}
	served->failures += stats.pages_given != (uint64_t)served->rounds * PAGES;
	return NULL;
}

START_TEST(a_loop_in_each_thread)
{
	struct served served[LOOPS] = { 0 };
	pthread_t threads[LOOPS];

	for (unsigned i = 0; i < LOOPS; i++) {
		served[i].index = i;
		served[i].ctx = support_open(i);
		served[i].rounds = support_rounds(50);
	}
	for (unsigned i = 0; i < LOOPS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, serve, &served[i]), 0);
	for (unsigned i = 0; i < LOOPS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < LOOPS; i++) {
		ck_assert_int_eq(served[i].failures, 0);
		close_checked(served[i].ctx, i);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("threads");
	TCase *tcase = tcase_create("libuv");

	tcase_add_test(tcase, commands_beside_the_loop);
	tcase_add_test(tcase, a_loop_in_each_thread);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; tsan show timeout=240 seconds=11 */
/*
 * Two threads open, attach and close four devices at the same time, one on libuv, one on poll() alone.
 * Each device has all features every time, and hears of its own removal request and of no other's.
 */
#include <pthread.h>
#include <stdio.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "test_open.h"

#define THREADS 2
#define PAIR    2
#define TICK_MS 10

struct unit {
	unsigned number;
	struct mlx5vfio *dev;
	int removals;
	int closed;
	int detached;
};

struct worker {
	pthread_t thread;
	unsigned index;
	uv_loop_t own;
	uv_loop_t *loop; /* NULL: poll() */
	struct unit units[PAIR];
	int opened;
	int reduced;
};

static pthread_barrier_t barrier;
static int rounds;

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	struct unit *unit = arg;

	(void)dev;
	unit->removals++;
}

static void on_closed(int error, void *arg)
{
	struct unit *unit = arg;

	support_require(!error, "device %u: close: %d", unit->number, error);
	unit->closed++;
}

static void on_detached(void *arg)
{
	struct unit *unit = arg;

	unit->detached++;
}

static void open_unit(struct worker *worker, struct unit *unit, unsigned number)
{
	static const struct mlx5vfio_handlers handlers = {
		.removal = on_removal,
		.closed = on_closed,
		.detached = on_detached,
	};
	struct ibv_context *ctx = test_open(number);

	*unit = (struct unit){ .number = number };
	unit->dev = worker->loop ? mlx5vfio_uv_attach(worker->loop, ctx)
				 : mlx5vfio_attach(ctx, NULL, NULL);
	support_require(unit->dev != NULL, "cannot attach device %u", number);
	mlx5vfio_set_handlers(unit->dev, &handlers, unit);
	mlx5vfio_set_interval(unit->dev, TICK_MS);
	worker->opened++;
	worker->reduced += mlx5vfio_features(unit->dev) != ALL_FEATURES;
}

/* Each of them often enough: a tick of both is due within TICK_MS. */
static void turn(struct worker *worker)
{
	unsigned i;

	if (worker->loop) {
		uv_run(worker->loop, UV_RUN_ONCE);
		return;
	}
	for (i = 0; i < PAIR; i++)
		if (!worker->units[i].detached)
			test_turn(worker->units[i].dev, TICK_MS);
}

static void hear_of_removal(struct worker *worker, struct unit *unit)
{
	int64_t late = support_now_ms() + 30000;

	if (!(mlx5vfio_features(unit->dev) & MLX5VFIO_FEATURE_REMOVAL))
		return;
	support_sim("remove-request %u every 1ms", unit->number);
	while (!unit->removals) {
		turn(worker);
		support_require(support_now_ms() < late, "device %u hears nothing", unit->number);
	}
}

/* In turns by each of the two ways. */
static void close_unit(struct worker *worker, struct unit *unit, int round)
{
	struct ibv_context *ctx = mlx5vfio_context(unit->dev);

	if ((unsigned)round / 2 % 2 == worker->index) {
		mlx5vfio_detach(unit->dev);
		support_require(!ibv_close_device(ctx), "cannot close device %u", unit->number);
		unit->closed++;
	} else {
		support_require(!mlx5vfio_close(unit->dev), "cannot close device %u", unit->number);
	}
	while (!unit->detached)
		turn(worker);
	support_require(unit->closed == 1 && unit->detached == 1, "device %u: %d, %d", unit->number,
			unit->closed, unit->detached);
}

/* The threads swap their devices each round, and begin it together. */
static void play_round(struct worker *worker, int round)
{
	unsigned first = ((unsigned)round + worker->index) % THREADS * PAIR;
	int i;

	pthread_barrier_wait(&barrier);
	for (i = 0; i < PAIR; i++)
		open_unit(worker, &worker->units[i], first + (unsigned)i);
	for (i = 0; i < PAIR; i++) {
		hear_of_removal(worker, &worker->units[i]);
		support_require(worker->units[0].removals == 1 && worker->units[1].removals == i,
				"device %u: a request reached another: %d, %d",
				worker->units[i].number, worker->units[0].removals,
				worker->units[1].removals);
	}
	for (i = 0; i < PAIR; i++)
		close_unit(worker, &worker->units[i], round);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	int round;

	if (!worker->index) {
		support_require(!uv_loop_init(&worker->own), "no loop");
		worker->loop = &worker->own;
	}
	for (round = 0; round < rounds; round++)
		play_round(worker, round);
	if (worker->loop)
		support_require(!uv_loop_close(worker->loop), "the loop is busy");
	return NULL;
}

/* What the simulator and libuv keep for themselves is there after the first round. */
static void run_workers(struct worker workers[THREADS], int count)
{
	unsigned i;

	rounds = count;
	for (i = 0; i < THREADS; i++) {
		workers[i].index = i;
		support_require(!pthread_create(&workers[i].thread, NULL, work, &workers[i]),
				"no thread");
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
}

START_TEST(two_threads_four_devices)
{
	struct worker first[THREADS] = { 0 }, workers[THREADS] = { 0 };
	int64_t start;
	int fds;

	pthread_barrier_init(&barrier, NULL, THREADS);
	run_workers(first, 1);
	fds = support_open_fds();
	start = support_now_ms();
	run_workers(workers, support_rounds(1000) / (THREADS * PAIR));
	printf("%d opens, %d with fewer features, %lld ms\n", workers[0].opened + workers[1].opened,
	       workers[0].reduced + workers[1].reduced, (long long)(support_now_ms() - start));
	ck_assert_int_eq(workers[0].reduced + workers[1].reduced, 0);
	ck_assert(test_no_more_fds(fds));
	pthread_barrier_destroy(&barrier);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("open threads");
	TCase *tcase = tcase_create("threads");

	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, two_threads_four_devices);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

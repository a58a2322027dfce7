/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; show heavy seconds=35 */
/*
 * The wall clock is not ours: it is stepped at random moments, across the edge of libmlx5's
 * 1000 ms, by hours; a device wears for ten minutes. A healthy device is never accused, a dead one
 * always found.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "support/support.h"

#define INTERVAL_MS 50
#define GIVE_UP_MS  10000

static struct {
	struct ibv_context *ctx;
	struct mlx5vfio *dev;
	int told, errors;
	enum mlx5vfio_fault fault;
	atomic_bool stop;
	uint64_t random;
	uint64_t steps;
} run;

static uint64_t random_below(uint64_t bound)
{
	run.random = run.random * 6364136223846793005u + 1442695040888963407u;
	return (run.random >> 33) % bound;
}

static void seed(void)
{
	const char *given = getenv("SEED");

	run.random = given ? strtoull(given, NULL, 0) : (uint64_t)uv_hrtime();
	printf("SEED=%llu\n", (unsigned long long)run.random);
	fflush(stdout);
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	(void)dev;
	(void)arg;
	run.told++;
	run.fault = health->fault;
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)dev;
	(void)error;
	(void)arg;
	run.errors++;
}

static const struct mlx5vfio_handlers handlers = { .health = on_health, .error = on_error };

static void attach(int interval_ms)
{
	run.told = 0;
	run.fault = MLX5VFIO_OK;
	run.dev = mlx5vfio_attach(run.ctx, NULL, NULL);
	ck_assert_ptr_nonnull(run.dev);
	ck_assert(mlx5vfio_guarded(run.dev));
	mlx5vfio_set_handlers(run.dev, &handlers, NULL);
	ck_assert_int_eq(mlx5vfio_set_interval(run.dev, interval_ms), 0);
}

/*
 * A verb serves what is left in the queue while it waits for its own answer, and checks no health.
 * What was under way at the close would be libmlx5's leak.
 */
static void drain(void)
{
	int tries = 1000;

	while (mlx5vfio_sim_settle(0, 0) && tries--) {
		struct ibv_pd *pd = ibv_alloc_pd(run.ctx);

		if (pd)
			ibv_dealloc_pd(pd);
	}
}

/* Healed first: closing a dead device takes libmlx5 240 s. */
static void heal_and_close(void)
{
	support_sim("requests-stop 0");
	support_sim("heal 0");
	support_sim("spurious 0");
	drain();
	ck_assert_uint_eq(support_stats(0).violations, 0);
	ck_assert_int_eq(ibv_close_device(run.ctx), 0);
}

static void turn(void)
{
	struct pollfd fd;
	int timeout = mlx5vfio_timeout_ms(run.dev);
	int n = mlx5vfio_pollfds(run.dev, &fd, 1);

	poll(&fd, (nfds_t)n, timeout < 0 ? INTERVAL_MS : timeout);
	if (n && fd.revents)
		mlx5vfio_process(run.dev, fd.fd, fd.revents);
	if (!mlx5vfio_timeout_ms(run.dev))
		mlx5vfio_process(run.dev, -1, 0);
}

static void event(void)
{
	struct pollfd fd;

	if (mlx5vfio_pollfds(run.dev, &fd, 1))
		mlx5vfio_process(run.dev, fd.fd, POLLIN);
	if (!mlx5vfio_timeout_ms(run.dev))
		mlx5vfio_process(run.dev, -1, 0);
}

/* An hour, a millisecond, and around the period of libmlx5's check. */
static int random_step(void)
{
	static const int steps[] = { 3600000, -3600000, 1, -1, 999, 1000, 1001, 998, 1002, -1000 };

	return steps[random_below(sizeof(steps) / sizeof(steps[0]))];
}

static void *step_now_and_then(void *arg)
{
	while (!atomic_load(&run.stop)) {
		support_sim("clock-step %d", random_step());
		run.steps++;
		usleep((useconds_t)random_below(*(const uint64_t *)arg));
	}
	return NULL;
}

static pthread_t start_stepping(uint64_t *every_us)
{
	pthread_t thread;

	run.steps = 0;
	atomic_store(&run.stop, false);
	support_require(!pthread_create(&thread, NULL, step_now_and_then, every_us), "no thread");
	return thread;
}

static uint64_t stop_stepping(pthread_t thread)
{
	atomic_store(&run.stop, true);
	pthread_join(thread, NULL);
	return run.steps;
}

static void start_load(void)
{
	support_sim("page-request 0 1 1000000 spaced every 200us");
	support_sim("reclaim 0 1 1000000 spaced every 200us");
}

/* From another thread, so at any point of a call as well. */
START_TEST(steps_accuse_no_healthy_device)
{
	uint64_t every_us[] = { 200, 3000, 50000 };
	int64_t until = support_now_ms() + support_rounds(3000);
	pthread_t thread;

	run.ctx = support_open(0);
	attach(INTERVAL_MS);
	start_load();
	thread = start_stepping(&every_us[_i]);
	while (support_now_ms() < until)
		turn();
	printf("%llu steps, at most %llu us apart, in a busy loop: %d reports\n",
	       (unsigned long long)stop_stepping(thread), (unsigned long long)every_us[_i],
	       run.told);
	ck_assert_int_eq(run.told, 0);
	ck_assert_int_eq(run.errors, 0);
	mlx5vfio_detach(run.dev);
	heal_and_close();
}
END_TEST

static const struct fault {
	const char *name;
	enum mlx5vfio_fault fault;
} faults[] = {
	{ "pci-offline", MLX5VFIO_PCI_OFFLINE },
	{ "nic-disabled", MLX5VFIO_NIC_DISABLED },
	{ "nic-reset", MLX5VFIO_NIC_RESET },
	{ "fatal", MLX5VFIO_FW_FATAL },
};

/*
 * No tick, so nothing but the look before libmlx5's own finds the fault. The first step tells the
 * guard where libmlx5 stands, the second brings it to the edge.
 */
static void one_life(const struct fault *fault)
{
	int64_t injected;

	attach(0);
	event();
	support_sim("clock-step 1000");
	usleep((useconds_t)random_below(12000)); /* the counter moves every 10 ms */
	event();
	support_sim("clock-step %d", random_step());
	if (random_below(2))
		event();
	support_sim("clock-step %d", 990 + (int)random_below(11));
	ck_assert_int_eq(run.told, 0);
	support_sim("%s 0", fault->name);
	injected = support_now_ms();
	while (!run.told && support_now_ms() < injected + GIVE_UP_MS)
		event();
	ck_assert_int_eq(run.told, 1);
	ck_assert_str_eq(mlx5vfio_fault_str(run.fault), mlx5vfio_fault_str(fault->fault));
	mlx5vfio_detach(run.dev);
	support_sim("heal 0");
	support_sim("spurious 0");
}

START_TEST(faults_are_found_in_between)
{
	int rounds = support_rounds(400);
	int64_t start = support_now_ms();
	int i;

	seed();
	run.ctx = support_open(0);
	for (i = 0; i < rounds; i++)
		one_life(&faults[random_below(sizeof(faults) / sizeof(faults[0]))]);
	printf("%d faults around the edge: all found, %lld ms\n", rounds,
	       (long long)(support_now_ms() - start));
	heal_and_close();
}
END_TEST

/* The wall clock is what libmlx5 counts by; a stall is judged by time all the same. */
START_TEST(stall_is_found_under_steps)
{
	uint64_t every_us = 100000;
	pthread_t thread;
	int64_t frozen;

	run.ctx = support_open(0);
	attach(INTERVAL_MS);
	start_load();
	thread = start_stepping(&every_us);
	while (run.steps < 5)
		turn();
	support_sim("freeze 0");
	frozen = support_now_ms();
	while (!run.told && support_now_ms() < frozen + GIVE_UP_MS)
		turn();
	stop_stepping(thread);
	printf("frozen under steps: told after %lld ms\n", (long long)(support_now_ms() - frozen));
	ck_assert_int_eq(run.told, 1);
	ck_assert_int_eq(run.fault, MLX5VFIO_STALLED);
	ck_assert_int_ge(support_now_ms(), frozen + 1900);
	mlx5vfio_detach(run.dev);
	heal_and_close();
}
END_TEST

/* Ten minutes of wall clock: events, commands in another thread, steps. */

static void *commands(void *arg)
{
	(void)arg;
	while (!atomic_load(&run.stop)) {
		struct ibv_pd *pd = ibv_alloc_pd(run.ctx);

		if (pd)
			ibv_dealloc_pd(pd);
		usleep(500);
	}
	return NULL;
}

static int64_t wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* libmlx5 and the guard live by two clocks; the wall's runs 30 times as fast as the other. */
START_TEST(ten_minutes_of_wear)
{
	int64_t minutes = support_rounds(10);
	int64_t wall_start, stepped = 0, next_step = 0;
	struct mlx5vfio_stats stats;
	pthread_t thread;
	int steps = 0;

	seed();
	run.ctx = support_open(0);
	attach(INTERVAL_MS);
	start_load();
	atomic_store(&run.stop, false);
	support_require(!pthread_create(&thread, NULL, commands, NULL), "no thread");
	support_sim("clock-rate 30");
	wall_start = wall_ms();
	while (wall_ms() - stepped < wall_start + minutes * 60000) {
		turn();
		if (support_now_ms() < next_step)
			continue;
		next_step = support_now_ms() + (int64_t)random_below(200);
		steps++;
		stepped -= wall_ms();
		support_sim("clock-step %d", random_step());
		stepped += wall_ms();
	}
	support_sim("clock-rate 1");
	atomic_store(&run.stop, true);
	while (pthread_tryjoin_np(thread, NULL))
		turn();
	mlx5vfio_get_stats(run.dev, &stats, sizeof(stats));
	printf("%lld minutes of wear: %llu calls, %llu entries, %llu commands, %d steps, %llu samples: %d "
	       "reports, %llu errors\n",
	       (long long)minutes, (unsigned long long)stats.calls,
	       (unsigned long long)support_stats(0).consumed,
	       (unsigned long long)support_stats(0).commands, steps,
	       (unsigned long long)stats.samples, run.told, (unsigned long long)stats.errors);
	ck_assert_int_eq(run.told, 0);
	ck_assert_uint_eq(stats.errors, 0);
	mlx5vfio_detach(run.dev);
	heal_and_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard, clocks");
	TCase *tcase = tcase_create("clock");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, steps_accuse_no_healthy_device, 0, 3);
	tcase_add_test(tcase, faults_are_found_in_between);
	tcase_add_test(tcase, stall_is_found_under_steps);
	tcase_add_test(tcase, ten_minutes_of_wear);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

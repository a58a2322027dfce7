/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 8; show timeout=200 heavy seconds=25 */
/*
 * Thousands of faults at random moments of a busy loop, and the wall clock stepped in the middle of
 * it: the process lives, and each fault is told once and by its name. SEED=… repeats a run.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "support/support.h"

#define SLOTS         8
#define INTERVAL_MS   10
#define LINGER_MS     (2 * INTERVAL_MS + 5)
#define GIVE_UP_MS    20000
#define REOPEN_ONE_IN 8
#define STALL_ONE_IN  40 /* a stall takes two seconds to be one */
#define MAX_LATENCIES 20000

static const struct fault {
	const char *name;
	enum mlx5vfio_fault fault;
} faults[] = {
	{ "freeze", MLX5VFIO_STALLED },
	{ "pci-offline", MLX5VFIO_PCI_OFFLINE },
	{ "nic-disabled", MLX5VFIO_NIC_DISABLED },
	{ "nic-reset", MLX5VFIO_NIC_RESET },
	{ "fatal", MLX5VFIO_FW_FATAL },
};

#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* One simulated device, which goes through one life after another. */
struct slot {
	unsigned number;
	struct ibv_context *ctx; /* NULL: the next life opens it */
	struct mlx5vfio *dev;    /* NULL between two lives */
	uv_timer_t timer;
	const struct fault *fault;
	int64_t injected; /* 0: still healthy */
	int told;
	bool detach_inside; /* detach and close inside .health */
	bool letting_go;    /* .detached is due */
	bool has_thread;
	atomic_bool stop;
	pthread_t thread;
};

static struct {
	uv_loop_t loop;
	uv_timer_t watchdog;
	struct slot slots[SLOTS];
	uint64_t random;
	int rounds, begun, ended;
	int by_fault[FAULTS];
	int steps, threads;
	int64_t sensor_ms[MAX_LATENCIES];
	int sensors;
	int64_t slowest_stall;
	uint64_t calls, samples, deferred, interrupts, events;
	atomic_bool stop_storm;
	pthread_t storm;
} run;

static uint64_t random_below(uint64_t bound)
{
	run.random = run.random * 6364136223846793005u + 1442695040888963407u;
	return (run.random >> 33) % bound;
}

/* Signals stay with the loop's thread: one handled in a verb would fail the command under way. */
static void *commands(void *arg)
{
	struct slot *slot = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!atomic_load(&slot->stop)) {
		struct ibv_pd *pd = ibv_alloc_pd(slot->ctx);

		if (pd)
			ibv_dealloc_pd(pd);
	}
	return NULL;
}

/* Interrupts for whichever device is open, beside those of the page requests. */
static void *storm(void *arg)
{
	unsigned turn = 0;
	char line[32];
	sigset_t all;

	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!atomic_load(&run.stop_storm)) {
		snprintf(line, sizeof(line), "spurious %u", turn % SLOTS);
		mlx5vfio_sim_control(line, NULL, 0);
		if (!(++turn % 2))
			usleep(100);
	}
	return NULL;
}

static void start_thread(struct slot *slot)
{
	atomic_store(&slot->stop, false);
	slot->has_thread = !random_below(3);
	if (!slot->has_thread)
		return;
	run.threads++;
	support_require(!pthread_create(&slot->thread, NULL, commands, slot), "no thread");
}

static void add_up(const struct mlx5vfio *dev)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(dev, &stats, sizeof(stats));
	run.calls += stats.calls;
	run.samples += stats.samples;
	run.deferred += stats.deferred;
}

/* A doorbell may have died with the device: an interrupt makes who waits look and ring again. */
static void revive(struct slot *slot)
{
	support_sim("requests-stop %u", slot->number);
	support_sim("heal %u", slot->number);
	support_sim("spurious %u", slot->number);
	if (!slot->has_thread)
		return;
	atomic_store(&slot->stop, true);
	while (pthread_tryjoin_np(slot->thread, NULL)) {
		usleep(100);
		support_sim("spurious %u", slot->number);
	}
	support_sim("spurious %u", slot->number);
}

/*
 * A verb serves what is left in the queue while it waits for its own answer, and checks no health.
 * What was under way at the close would be libmlx5's leak.
 */
static void drain(const struct slot *slot)
{
	int tries = 1000;

	while (mlx5vfio_sim_settle(slot->number, 0) && tries--) {
		struct ibv_pd *pd = ibv_alloc_pd(slot->ctx);

		if (pd)
			ibv_dealloc_pd(pd);
	}
}

static void close_ctx(struct slot *slot)
{
	struct mlx5vfio_sim_stats stats;

	drain(slot);
	stats = support_stats(slot->number);
	run.interrupts += stats.interrupts;
	run.events += stats.consumed;
	ck_assert_uint_eq(stats.violations, 0);
	ck_assert_int_eq(ibv_close_device(slot->ctx), 0);
	slot->ctx = NULL;
}

/* A command that waits in the dead device, and the close, end only when it lives again. */
static void end_life(struct slot *slot)
{
	struct mlx5vfio *dev = slot->dev;

	add_up(dev);
	slot->dev = NULL;
	slot->letting_go = true;
	mlx5vfio_detach(dev);
	revive(slot);
	run.ended++;
	if (!random_below(REOPEN_ONE_IN))
		close_ctx(slot);
}

static void note_latency(const struct slot *slot)
{
	int64_t latency = support_now_ms() - slot->injected;

	if (slot->fault->fault != MLX5VFIO_STALLED)
		run.sensor_ms[run.sensors++ % MAX_LATENCIES] = latency;
	else if (latency > run.slowest_stall)
		run.slowest_stall = latency;
}

static void on_linger_end(uv_timer_t *timer)
{
	end_life(timer->data);
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct slot *slot = arg;

	(void)dev;
	ck_assert_msg(slot->injected, "false alarm: %s", mlx5vfio_fault_str(health->fault));
	ck_assert_str_eq(mlx5vfio_fault_str(health->fault), mlx5vfio_fault_str(slot->fault->fault));
	ck_assert_int_eq(++slot->told, 1);
	note_latency(slot);
	run.by_fault[slot->fault - faults]++;
	if (slot->detach_inside)
		end_life(slot);
	else
		uv_timer_start(&slot->timer, on_linger_end, LINGER_MS, 0);
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)dev;
	(void)arg;
	ck_abort_msg("process_events: %d", error);
}

/* Most steps bring libmlx5's next check close: it comes once in 1000 ms of the wall clock. */
static void step_clock(void)
{
	static const int steps[] = { 1, -1, 3600000, -3600000 };
	uint64_t choice = random_below(12);

	run.steps++;
	if (choice < 4)
		support_sim("clock-step %d", steps[choice]);
	else
		support_sim("clock-step %d", 990 + (int)random_below(20));
}

/*
 * On the loop's own thread, so between two calls: a device that dies between our look and libmlx5's
 * is what the guard cannot catch.
 */
static void inject(uv_timer_t *timer)
{
	struct slot *slot = timer->data;

	if (random_below(2))
		step_clock();
	support_sim("%s %u", slot->fault->name, slot->number);
	slot->injected = support_now_ms();
}

static const struct fault *choose_fault(void)
{
	if (!random_below(STALL_ONE_IN))
		return &faults[0];
	return &faults[1 + random_below(FAULTS - 1)];
}

static void begin_life(uv_timer_t *timer);

static void on_detached(void *arg)
{
	struct slot *slot = arg;

	ck_assert(slot->letting_go);
	slot->letting_go = false;
	uv_timer_start(&slot->timer, begin_life, random_below(2), 0);
}

static void start_load(struct slot *slot)
{
	support_sim("page-request %u 1 1000000 spaced every 100us", slot->number);
	support_sim("reclaim %u 1 1000000 spaced every 100us", slot->number);
	start_thread(slot);
}

static void begin_life(uv_timer_t *timer)
{
	static const struct mlx5vfio_handlers handlers = { .health = on_health,
							   .error = on_error,
							   .detached = on_detached };
	struct slot *slot = timer->data;

	if (run.begun == run.rounds)
		return;
	run.begun++;
	if (!slot->ctx)
		slot->ctx = support_open(slot->number);
	slot->dev = mlx5vfio_uv_attach(&run.loop, slot->ctx);
	ck_assert_ptr_nonnull(slot->dev);
	ck_assert(mlx5vfio_guarded(slot->dev));
	mlx5vfio_set_handlers(slot->dev, &handlers, slot);
	ck_assert_int_eq(mlx5vfio_set_interval(slot->dev, INTERVAL_MS), 0);
	slot->fault = choose_fault();
	slot->injected = slot->told = 0;
	slot->detach_inside = random_below(2);
	/* Checks that all lie behind now tell the guard where libmlx5 stands: it puts off less. */
	if (random_below(4))
		support_sim("clock-step 1000");
	start_load(slot);
	uv_timer_start(&slot->timer, inject, 1 + random_below(60), 0);
}

static void watch(uv_timer_t *timer)
{
	int64_t now = support_now_ms();
	int i;

	if (run.ended == run.rounds) {
		uv_timer_stop(timer);
		return;
	}
	for (i = 0; i < SLOTS; i++) {
		const struct slot *slot = &run.slots[i];

		if (slot->dev && slot->injected && !slot->told)
			ck_assert_msg(now < slot->injected + GIVE_UP_MS, "%s was not told",
				      slot->fault->name);
	}
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static unsigned long long per_second(uint64_t count, int64_t ms)
{
	return (unsigned long long)count * 1000 / (unsigned long long)(ms ? ms : 1);
}

static void print_figures(int64_t ms)
{
	int count = run.sensors < MAX_LATENCIES ? run.sensors : MAX_LATENCIES;
	size_t i;

	qsort(run.sensor_ms, (size_t)count, sizeof(run.sensor_ms[0]), compare);
	for (i = 0; i < FAULTS; i++)
		printf("%-31s %5d times\n", mlx5vfio_fault_str(faults[i].fault), run.by_fault[i]);
	printf("%d faults in %lld ms, %d command threads, %d clock steps; no abort, each told once\n",
	       run.ended, (long long)ms, run.threads, run.steps);
	printf("a second: %llu interrupts, %llu entries, %llu calls; %llu samples, %llu calls put off\n",
	       per_second(run.interrupts, ms), per_second(run.events, ms),
	       per_second(run.calls, ms), (unsigned long long)run.samples,
	       (unsigned long long)run.deferred);
	if (count)
		printf("sensors told after %lld ms (median), %lld ms (slowest); stalls after %lld ms at most\n",
		       (long long)run.sensor_ms[count / 2], (long long)run.sensor_ms[count - 1],
		       (long long)run.slowest_stall);
}

static void start_slots(void)
{
	unsigned i;

	uv_timer_init(&run.loop, &run.watchdog);
	uv_timer_start(&run.watchdog, watch, 100, 100);
	for (i = 0; i < SLOTS; i++) {
		struct slot *slot = &run.slots[i];

		slot->number = i;
		uv_timer_init(&run.loop, &slot->timer);
		slot->timer.data = slot;
		uv_timer_start(&slot->timer, begin_life, i, 0);
	}
}

static void close_timers(void)
{
	int i;

	uv_close((uv_handle_t *)&run.watchdog, NULL);
	for (i = 0; i < SLOTS; i++)
		uv_close((uv_handle_t *)&run.slots[i].timer, NULL);
	uv_run(&run.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&run.loop), 0);
}

START_TEST(faults_at_random_moments)
{
	const char *seed = getenv("SEED");
	int64_t start = support_now_ms();
	size_t i;

	memset(&run, 0, sizeof(run));
	run.random = seed ? strtoull(seed, NULL, 0) : (uint64_t)uv_hrtime();
	run.rounds = support_rounds(2000);
	printf("SEED=%llu\n", (unsigned long long)run.random);
	fflush(stdout);
	uv_loop_init(&run.loop);
	start_slots();
	support_require(!pthread_create(&run.storm, NULL, storm, NULL), "no thread");
	uv_run(&run.loop, UV_RUN_DEFAULT);
	atomic_store(&run.stop_storm, true);
	pthread_join(run.storm, NULL);
	for (i = 0; i < SLOTS; i++)
		if (run.slots[i].ctx)
			close_ctx(&run.slots[i]);
	print_figures(support_now_ms() - start);
	ck_assert_int_eq(run.ended, run.rounds);
	for (i = 1; i < FAULTS; i++)
		ck_assert_int_gt(run.by_fault[i], 0);
	close_timers();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard, random faults");
	TCase *tcase = tcase_create("random");

	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, faults_at_random_moments);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

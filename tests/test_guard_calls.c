/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 8; show heavy seconds=20 */
/*
 * Calls as fast as they come: what they cost in looks at the registers, and that back to back and
 * without a tick none of libmlx5's checks comes unseen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mlx5vfio/core.h>

#include "support/support.h"

#define GIVE_UP_MS 10000
#define DEVICES    8
#define PACE_US    3000000 /* six of the default ticks */

struct tested {
	unsigned number;
	struct ibv_context *ctx;
	struct mlx5vfio *dev;
	int told;
	enum mlx5vfio_fault fault, expected;
	int64_t inject_at;
};

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % bound;
}

static void seed(void)
{
	const char *given = getenv("SEED");
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	random_state = given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_nsec;
	printf("SEED=%llu\n", (unsigned long long)random_state);
	fflush(stdout);
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct tested *tested = arg;

	(void)dev;
	tested->told++;
	tested->fault = health->fault;
}

static void attach(struct tested *tested, int interval_ms)
{
	static const struct mlx5vfio_handlers handlers = { .health = on_health };

	tested->told = 0;
	tested->dev = mlx5vfio_attach(tested->ctx, NULL, NULL);
	ck_assert_ptr_nonnull(tested->dev);
	ck_assert(mlx5vfio_guarded(tested->dev));
	mlx5vfio_set_handlers(tested->dev, &handlers, tested);
	ck_assert_int_eq(mlx5vfio_set_interval(tested->dev, interval_ms), 0);
}

/* A loop's turn with the fd ready, without the system call that would say so. */
static void event(const struct tested *tested)
{
	struct pollfd fd;

	if (mlx5vfio_pollfds(tested->dev, &fd, 1))
		mlx5vfio_process(tested->dev, fd.fd, POLLIN);
	if (!mlx5vfio_timeout_ms(tested->dev))
		mlx5vfio_process(tested->dev, -1, 0);
}

static struct mlx5vfio_stats stats_of(const struct tested *tested)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(tested->dev, &stats, sizeof(stats));
	return stats;
}

/* What looking costs, the default tick included. */

static const struct pace {
	int64_t gap_us; /* 0: no calls but the tick's */
	const char *name;
} paces[] = { { 0, "no" }, { 1000, "1,000" }, { 10, "100,000" } };

static void wait_until(int64_t us)
{
	int64_t left = us - now_us();

	if (left > 100)
		usleep((useconds_t)left - 60);
	while (now_us() < us)
		;
}

static void call_at(const struct tested *tested, int64_t gap_us, int64_t until)
{
	int64_t next = now_us();

	while (next < until) {
		wait_until(next);
		event(tested);
		next += gap_us;
	}
}

static void tick_only(const struct tested *tested, int64_t until)
{
	while (now_us() < until) {
		usleep(5000);
		if (!mlx5vfio_timeout_ms(tested->dev))
			mlx5vfio_process(tested->dev, -1, 0);
	}
}

START_TEST(looking_is_rare)
{
	const struct pace *pace = &paces[_i];
	struct tested tested = { .ctx = support_open(0) };
	struct mlx5vfio_stats stats;
	int64_t start = now_us();
	double seconds;

	attach(&tested, MLX5VFIO_DEFAULT_INTERVAL);
	if (pace->gap_us)
		call_at(&tested, pace->gap_us, start + PACE_US);
	else
		tick_only(&tested, start + PACE_US);
	seconds = (double)(now_us() - start) / 1e6;
	stats = stats_of(&tested);
	printf("%7s calls a second: made %8.0f, put off %llu in all, %5.1f samples a second\n",
	       pace->name, (double)stats.calls / seconds, (unsigned long long)stats.deferred,
	       (double)stats.samples / seconds);
	if (pace->gap_us >= 1000 || !pace->gap_us)
		ck_assert_double_le((double)stats.samples / seconds, 10.0);
	else
		ck_assert_uint_le(stats.samples * 100, stats.calls);
	ck_assert_int_eq(tested.told, 0);
	mlx5vfio_detach(tested.dev);
	ck_assert_int_eq(ibv_close_device(tested.ctx), 0);
}
END_TEST

/* Back to back, no tick: only the look before libmlx5's own can find a fault. */

static const struct fault {
	const char *name;
	enum mlx5vfio_fault fault;
} faults[] = {
	{ "pci-offline", MLX5VFIO_PCI_OFFLINE },
	{ "nic-disabled", MLX5VFIO_NIC_DISABLED },
	{ "nic-reset", MLX5VFIO_NIC_RESET },
	{ "fatal", MLX5VFIO_FW_FATAL },
};

static void inject(struct tested *tested)
{
	const struct fault *fault = &faults[random_below(sizeof(faults) / sizeof(faults[0]))];

	ck_assert_int_eq(tested->told, 0);
	support_sim("%s %u", fault->name, tested->number);
	tested->expected = fault->fault;
}

static void check_told(const struct tested *tested)
{
	ck_assert_int_eq(tested->told, 1);
	ck_assert_str_eq(mlx5vfio_fault_str(tested->fault), mlx5vfio_fault_str(tested->expected));
}

static void heal(const struct tested *tested)
{
	support_sim("heal %u", tested->number);
	support_sim("spurious %u", tested->number);
}

static void call_for(const struct tested *tested, int64_t us)
{
	int64_t until = now_us() + us;

	while (now_us() < until)
		event(tested);
}

/*
 * libmlx5 checks once in a second of the wall clock; only the moments around that differ from one
 * another. A step spares the test most of the second, the calls around the check come in real time.
 */
static uint64_t one_life(struct tested *tested)
{
	int64_t injected;
	uint64_t calls;

	attach(tested, 0);
	usleep(11000); /* until the counter has moved */
	event(tested);
	support_sim("clock-step 1000");
	event(tested); /* now the guard knows when libmlx5 has checked */
	support_sim("clock-step 980");
	call_for(tested, (int64_t)random_below(19500));
	inject(tested);
	injected = support_now_ms();
	while (!tested->told && support_now_ms() < injected + GIVE_UP_MS)
		event(tested);
	check_told(tested);
	calls = stats_of(tested).calls;
	mlx5vfio_detach(tested->dev);
	heal(tested);
	return calls;
}

START_TEST(back_to_back)
{
	struct tested tested = { .ctx = support_open(0) };
	int rounds = support_rounds(200);
	int64_t start = now_us();
	uint64_t calls = 0;
	int i;

	seed();
	for (i = 0; i < rounds; i++)
		calls += one_life(&tested);
	printf("%d faults between %llu calls back to back: all found, %lld ms\n", rounds,
	       (unsigned long long)calls, (long long)(now_us() - start) / 1000);
	ck_assert_int_eq(ibv_close_device(tested.ctx), 0);
}
END_TEST

/* The same without any step: every device lives through its second. */

static bool step_all(struct tested tested[])
{
	bool all_told = true;
	int i;

	for (i = 0; i < DEVICES; i++) {
		event(&tested[i]);
		if (tested[i].inject_at && now_us() >= tested[i].inject_at) {
			tested[i].inject_at = 0;
			inject(&tested[i]);
		}
		all_told = all_told && tested[i].told;
	}
	return all_told;
}

static void one_wave(struct tested tested[])
{
	int64_t start = now_us();
	int i;

	for (i = 0; i < DEVICES; i++) {
		attach(&tested[i], 0);
		tested[i].inject_at = start + 1000000 + (int64_t)random_below(1000000);
	}
	while (!step_all(tested) && now_us() < start + 3000000 + GIVE_UP_MS * 1000)
		;
	for (i = 0; i < DEVICES; i++) {
		check_told(&tested[i]);
		mlx5vfio_detach(tested[i].dev);
		heal(&tested[i]);
	}
}

START_TEST(back_to_back_in_real_time)
{
	struct tested tested[DEVICES] = { 0 };
	int waves = support_rounds(4);
	int i;

	seed();
	for (i = 0; i < DEVICES; i++) {
		tested[i].number = (unsigned)i;
		tested[i].ctx = support_open((unsigned)i);
	}
	for (i = 0; i < waves; i++)
		one_wave(tested);
	printf("%d faults in real time: all found\n", waves * DEVICES);
	for (i = 0; i < DEVICES; i++)
		ck_assert_int_eq(ibv_close_device(tested[i].ctx), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard, many calls");
	TCase *tcase = tcase_create("calls");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, looking_is_rare, 0, (int)(sizeof(paces) / sizeof(paces[0])));
	tcase_add_test(tcase, back_to_back);
	tcase_add_test(tcase, back_to_back_in_real_time);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

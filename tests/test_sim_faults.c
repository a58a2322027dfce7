/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 2; valgrind */
/* Every fault: how it shows in the registers, what libmlx5 makes of it, and how it ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/time.h>

#include "test_sim.h"

enum {
	NIC_STATE_SHIFT = 8,
	NIC_STATE = 7 << NIC_STATE_SHIFT,
	SILENCE = 30, /* ms */
	HEALTH_PERIOD = 1000,
	RESET_TIME = 110,
};

static struct ibv_context *ctx;
static uint8_t *bar;

static void set_up(void)
{
	ctx = support_open(0);
	bar = sim_bar_of(ctx, NULL);
}

static void clean_up(void)
{
	support_sim("heal *");
	sim_close_rest(&ctx);
}

/* libmlx5 looks at the device's health in its next call, not only after a second. */
static int process_with_health_check(void)
{
	support_sim("clock-step %d", HEALTH_PERIOD + 1);
	return mlx5dv_vfio_process_events(ctx);
}

static void expect_working(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	ck_assert_ptr_nonnull(pd);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}

static void expect_healthy(void)
{
	ck_assert_int_eq(process_with_health_check(), 0);
	expect_working();
}

static uint32_t counter(const uint8_t *at)
{
	return sim_read(at, SIM_REG_COUNTER) & 0xffffff;
}

/* Does the health counter move? Slow to say no. */
static bool counter_moves(const uint8_t *at, int timeout_ms)
{
	int64_t end = support_now_ms() + timeout_ms;
	uint32_t before = counter(at);

	while (counter(at) == before && support_now_ms() < end)
		usleep(1000);
	return counter(at) != before;
}

static uint32_t syndrome(const uint8_t *at)
{
	return sim_read(at, SIM_REG_SYNDROME) & 0xffffff;
}

START_TEST(healthy)
{
	ck_assert_uint_eq(sim_read(bar, SIM_REG_CMDIF) >> 16, 5);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_CMDQ_LOW) & NIC_STATE, 0);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_INITIALIZING), 0);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_RECOVERY), 0);
	ck_assert_uint_eq(syndrome(bar), 0);
	ck_assert(counter_moves(bar, SIM_PATIENCE));
	expect_healthy();
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(fatal)
{
	support_sim("fatal 0 0x10 0xabcd");
	ck_assert_uint_eq(syndrome(bar), 0x10abcd);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_RECOVERY), UINT32_C(1) << 31);
	support_sim("heal 0");
	ck_assert_uint_eq(syndrome(bar), 0);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_RECOVERY), 0);
	support_sim("fatal 0");
	ck_assert_uint_eq(syndrome(bar), 0x010000);
	support_sim("syndrome 0 0");
	ck_assert_uint_eq(syndrome(bar), 0);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_RECOVERY), 0);
	expect_healthy();
	sim_close(&ctx, 0, 0);
}
END_TEST

/* libmlx5 does not mind it without the recovery bit. */
START_TEST(harmless_syndrome)
{
	support_sim("syndrome 0 8 0x1234");
	ck_assert_uint_eq(syndrome(bar), 0x081234);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_RECOVERY), 0);
	expect_healthy();
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(nic_state)
{
	uint32_t queue = sim_read(bar, SIM_REG_CMDQ_LOW);

	support_sim("nic-disabled 0");
	ck_assert_uint_eq(sim_read(bar, SIM_REG_CMDQ_LOW), queue | 1 << NIC_STATE_SHIFT);
	support_sim("nic-reset 0");
	ck_assert_uint_eq(sim_read(bar, SIM_REG_CMDQ_LOW), queue | 7 << NIC_STATE_SHIFT);
	support_sim("heal 0");
	ck_assert_uint_eq(sim_read(bar, SIM_REG_CMDQ_LOW), queue);
	expect_healthy();
	sim_close(&ctx, 0, 0);
}
END_TEST

/* All ones, whatever is written; afterwards everything is as it was. */
START_TEST(pci_offline)
{
	uint32_t queue = sim_read(bar, SIM_REG_CMDQ_LOW);

	support_sim("pci-offline 0");
	for (size_t at = 0; at < 2 * SIM_PAGE; at += 4)
		ck_assert_uint_eq(sim_read(bar, at), UINT32_MAX);
	sim_write(bar, SIM_REG_CMDQ_HIGH, 0x1234);
	sim_write(bar, SIM_REG_DOORBELL, 1);
	support_stats(0);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_CMDQ_HIGH), UINT32_MAX);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_DOORBELL), UINT32_MAX);
	support_sim("heal 0");
	ck_assert_uint_eq(sim_read(bar, SIM_REG_CMDQ_LOW), queue);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_CMDQ_HIGH), 0);
	ck_assert(counter_moves(bar, SIM_PATIENCE));
	expect_healthy();
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(frozen_counter)
{
	support_sim("freeze 0");
	ck_assert(!counter_moves(bar, SILENCE));
	ck_assert_int_eq(process_with_health_check(), 0); /* one miss is none */
	ck_assert_int_eq(process_with_health_check(), 0);
	support_sim("thaw 0");
	ck_assert(counter_moves(bar, SIM_PATIENCE));
	expect_healthy();
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(foreign_reset)
{
	struct sim_raw raw = sim_raw_open(1);
	int64_t start;

	sim_write(raw.bar, SIM_REG_CMDQ_LOW, 0x12345000);
	start = support_now_ms();
	support_sim("foreign-reset 1");
	ck_assert_uint_eq(sim_read(raw.bar, SIM_REG_CMDIF), UINT32_MAX);
	while (sim_read(raw.bar, SIM_REG_CMDIF) == UINT32_MAX)
		ck_assert_int_lt(support_now_ms() - start, SIM_PATIENCE);
	ck_assert_int_ge(support_now_ms() - start, RESET_TIME - 1);
	ck_assert_uint_eq(sim_read(raw.bar, SIM_REG_CMDIF) >> 16, 5);
	ck_assert_uint_eq(sim_read(raw.bar, SIM_REG_CMDQ_LOW) & 0xfffff000, 0);
	sim_write(raw.bar, SIM_REG_DOORBELL, 1); /* the program does not know: no violation */
	ck_assert_uint_eq(sim_violations(1), 0);
	sim_raw_close(&raw);
	sim_close(&ctx, 0, 0);
}
END_TEST

/* A verb on a thread of its own. */
struct verb {
	pthread_t thread;
	atomic_bool done;
	struct ibv_pd *pd;
};

static void *alloc_pd(void *arg)
{
	struct verb *verb = arg;

	verb->pd = ibv_alloc_pd(ctx);
	atomic_store(&verb->done, true);
	return NULL;
}

START_TEST(hang)
{
	uint64_t commands = support_stats(0).commands;
	struct verb verb = { .done = false };

	support_sim("hang 0");
	ck_assert_int_eq(pthread_create(&verb.thread, NULL, alloc_pd, &verb), 0);
	usleep(SILENCE * 1000);
	ck_assert(!atomic_load(&verb.done));
	ck_assert_int_eq(process_with_health_check(), 0);
	ck_assert_uint_eq(support_stats(0).commands, commands);
	ck_assert_int_eq(mlx5vfio_sim_settle(0, SIM_PATIENCE),
			 0); /* a hung command does not count */
	support_sim("unhang 0");
	ck_assert_int_eq(pthread_join(verb.thread, NULL), 0);
	ck_assert_ptr_nonnull(verb.pd);
	ck_assert_uint_eq(support_stats(0).commands, commands + 1);
	ck_assert_int_eq(ibv_dealloc_pd(verb.pd), 0);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(delay)
{
	int64_t start = support_now_ms();
	struct ibv_pd *pd;

	support_sim("delay 0 50ms");
	pd = ibv_alloc_pd(ctx);
	ck_assert_ptr_nonnull(pd);
	ck_assert_int_ge(support_now_ms() - start, 50);
	support_sim("delay 0 10s");
	support_sim("delay 0 0us");
	start = support_now_ms();
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_lt(support_now_ms() - start, 5000);
	sim_close(&ctx, 0, 0);
}
END_TEST

static void expect_failed_pd(int error)
{
	errno = 0;
	ck_assert_ptr_null(ibv_alloc_pd(ctx));
	ck_assert_int_eq(errno, error);
}

START_TEST(fail)
{
	static const struct {
		int status, error;
	} known[] = {
		{ 0x1, EIO },   { 0x2, EINVAL }, { 0x3, EINVAL }, { 0x4, EIO },  { 0x5, EINVAL },
		{ 0x6, EBUSY }, { 0x8, ENOMEM }, { 0xf, EAGAIN }, { 0x50, EIO }, { 0x51, EIO },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		support_sim("fail 0 800 %d", known[i].status);
		expect_failed_pd(known[i].error);
		expect_working();
	}
	support_sim("fail 0 * 6 2");
	expect_failed_pd(EBUSY);
	expect_failed_pd(EBUSY);
	expect_working();
	support_sim("fail 0 801 6"); /* another command */
	support_sim("fail 0 800 6 1000");
	expect_failed_pd(EBUSY);
	support_sim("fail 0 800 3 5"); /* in its place */
	expect_failed_pd(EINVAL);
	support_sim("fail 0 800 0 0");
	support_sim("fail 0 801 0 0");
	expect_working();
	sim_close(&ctx, 0, 0);
}
END_TEST

/* The tick of a loop is a real safety net: a call finds what no interrupt told. */
START_TEST(lost_interrupt)
{
	int fd = mlx5dv_vfio_get_events_fd(ctx);
	uint64_t before = support_stats(0).interrupts;

	ck_assert_int_eq(mlx5dv_vfio_process_events(ctx), 0);
	support_sim("lose-interrupt 0");
	support_sim("page-request 0 5");
	ck_assert(!sim_readable(fd, SILENCE));
	ck_assert_uint_eq(support_stats(0).interrupts, before);
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	ck_assert_uint_eq(support_stats(0).pages_given, 5);
	support_sim("page-request 0 5"); /* only one was to be lost */
	ck_assert(sim_readable(fd, SIM_PATIENCE));
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(spurious_interrupt)
{
	struct mlx5vfio_sim_stats before, after;
	int fd = mlx5dv_vfio_get_events_fd(ctx);

	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	before = support_stats(0);
	support_sim("spurious 0");
	ck_assert(sim_readable(fd, SIM_PATIENCE));
	ck_assert_int_eq(mlx5dv_vfio_process_events(ctx), 0);
	ck_assert(!sim_readable(fd, 0));
	after = support_stats(0);
	ck_assert_uint_eq(after.interrupts, before.interrupts + 1);
	ck_assert_uint_eq(after.eqes, before.eqes);
	sim_close(&ctx, 0, 0);
}
END_TEST

/* Faults that a reset cures, and one register that shows each. */
static const struct {
	const char *command;
	size_t at;
	uint32_t mask, value;
} curable[] = {
	{ "fatal 1 9", SIM_REG_SYNDROME, 0xff0000, 0x090000 },
	{ "syndrome 1 9", SIM_REG_SYNDROME, 0xff0000, 0x090000 },
	{ "nic-disabled 1", SIM_REG_CMDQ_LOW, NIC_STATE, 1 << NIC_STATE_SHIFT },
	{ "nic-reset 1", SIM_REG_CMDQ_LOW, NIC_STATE, 7 << NIC_STATE_SHIFT },
	{ "pci-offline 1", SIM_REG_FW_VERSION, UINT32_MAX, UINT32_MAX },
};

#define CURABLE (int)(sizeof(curable) / sizeof(curable[0]))

static bool shows(const struct sim_raw *raw, int i)
{
	return (sim_read(raw->bar, curable[i].at) & curable[i].mask) == curable[i].value;
}

START_TEST(cured_by_the_next_open)
{
	struct sim_raw raw = sim_raw_open(1);

	ck_assert(!shows(&raw, _i));
	support_sim("%s", curable[_i].command);
	ck_assert(shows(&raw, _i));
	sim_raw_close(&raw);
	raw = sim_raw_open(1);
	ck_assert(!shows(&raw, _i));
	support_sim("%s", curable[_i].command);
	ck_assert(shows(&raw, _i));
	ck_assert_int_eq(ioctl(raw.device, VFIO_DEVICE_RESET), 0);
	ck_assert(!shows(&raw, _i));
	sim_raw_close(&raw);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(set_while_closed)
{
	struct sim_raw raw;

	support_sim("%s", curable[_i].command);
	raw = sim_raw_open(1);
	ck_assert(shows(&raw, _i));
	sim_raw_close(&raw);
	raw = sim_raw_open(1); /* for that opening only */
	ck_assert(!shows(&raw, _i));
	sim_raw_close(&raw);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(freeze_and_hang_end_with_the_opening)
{
	struct sim_raw raw;

	support_sim("freeze 1");
	raw = sim_raw_open(1);
	ck_assert(!counter_moves(raw.bar, SILENCE));
	support_sim("hang 1");
	sim_raw_close(&raw);
	raw = sim_raw_open(1);
	ck_assert(counter_moves(raw.bar, SIM_PATIENCE));
	sim_raw_close(&raw);
	ck_assert_int_eq(ibv_close_device(support_open(1)), 0); /* does not hang */
	sim_close(&ctx, 0, 0);
}
END_TEST

static struct ibv_context *try_open(unsigned dev)
{
	struct mlx5dv_vfio_context_attr attr = { .pci_name = support_pci_name(dev) };
	struct ibv_device **list = mlx5dv_get_vfio_device_list(&attr);
	struct ibv_context *opened;

	ck_assert_ptr_nonnull(list);
	errno = 0;
	opened = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return opened;
}

/* What is not cured by a reset stays until it is ended or used up. */
START_TEST(openings_that_fail)
{
	int fds = support_open_fds();

	support_sim("fail 1 104 3");
	ck_assert_ptr_null(try_open(1));
	ck_assert_int_eq(errno, EINVAL);
	support_sim("map-fail 1");
	ck_assert_ptr_null(try_open(1));
	ck_assert_int_eq(errno, ENOMEM);
	support_sim("deny 1");
	ck_assert_ptr_null(try_open(1));
	ck_assert_int_eq(errno, EACCES);
	support_sim("allow 1");
	ck_assert_ptr_null(try_open(0)); /* it is open */
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_int_eq(support_open_fds(), fds);
	ck_assert_int_eq(ibv_close_device(support_open(1)), 0);
	ck_assert_int_eq(support_open_fds(), fds);
	ck_assert_uint_eq(sim_violations(1), 0);
	sim_close(&ctx, 0, 0);
}
END_TEST

static atomic_bool opened;

static void *open_second(void *unused)
{
	struct ibv_context *second = support_open(1);

	atomic_store(&opened, true);
	ck_assert_int_eq(ibv_close_device(second), 0);
	return unused;
}

START_TEST(init_stuck)
{
	pthread_t thread;

	atomic_store(&opened, false);
	support_sim("init-stuck 1 on");
	ck_assert_int_eq(pthread_create(&thread, NULL, open_second, NULL), 0);
	usleep(5 * SILENCE * 1000);
	ck_assert(!atomic_load(&opened));
	support_sim("init-stuck 1 off");
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(atomic_load(&opened));
	support_sim("init-stuck 0 on");
	ck_assert_uint_eq(sim_read(bar, SIM_REG_INITIALIZING), UINT32_C(1) << 31);
	support_sim("init-stuck 0 off");
	ck_assert_uint_eq(sim_read(bar, SIM_REG_INITIALIZING), 0);
	sim_close(&ctx, 0, 0);
}
END_TEST

/* Milliseconds by which the wall clock is ahead of the monotonic one, by each way to read it. */
static int64_t ahead_by_clock(clockid_t id)
{
	struct timespec now;

	ck_assert_int_eq(clock_gettime(id, &now), 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - support_now_ms();
}

static int64_t ahead_by_timeofday(void)
{
	struct timeval now;

	ck_assert_int_eq(gettimeofday(&now, NULL), 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_usec / 1000 - support_now_ms();
}

static void expect_near(int64_t value, int64_t wanted, int64_t tolerance)
{
	ck_assert_int_ge(value, wanted - tolerance);
	ck_assert_int_le(value, wanted + tolerance);
}

START_TEST(clock_step)
{
	const int64_t step = 3600 * 1000, near = 500;
	int64_t clock = ahead_by_clock(CLOCK_REALTIME), day = ahead_by_timeofday();
	int64_t coarse = ahead_by_clock(CLOCK_REALTIME_COARSE);
	time_t seconds = time(NULL);
	int64_t monotonic = support_now_ms();

	support_sim("clock-step %" PRId64, step);
	expect_near(ahead_by_clock(CLOCK_REALTIME), clock + step, near);
	expect_near(ahead_by_clock(CLOCK_REALTIME_COARSE), coarse + step, near);
	expect_near(ahead_by_timeofday(), day + step, near);
	expect_near(time(NULL), seconds + step / 1000, 2);
	expect_near(support_now_ms(), monotonic, SIM_PATIENCE);
	support_sim("clock-step %" PRId64, -step - 5000);
	expect_near(ahead_by_timeofday(), day - 5000, near);
	support_sim("clock-step 5000");
	expect_near(ahead_by_timeofday(), day, near);
	expect_healthy();
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(clock_rate)
{
	int64_t before = ahead_by_timeofday(), start = support_now_ms(), passed, after;

	support_sim("clock-rate 11");
	usleep(100000);
	after = ahead_by_timeofday();
	passed = support_now_ms() - start;
	ck_assert_int_ge(after - before, 900);
	ck_assert_int_le(after - before, 10 * passed + 100);
	support_sim("clock-rate 0"); /* stands still */
	before = ahead_by_timeofday();
	usleep(50000);
	ck_assert_int_le(ahead_by_timeofday(), before - 40);
	support_sim("clock-rate 1");
	before = ahead_by_timeofday();
	usleep(50000);
	expect_near(ahead_by_timeofday(), before, 20);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(every_device_at_once)
{
	struct sim_raw raw;

	support_sim("syndrome * 7");
	ck_assert_uint_eq(syndrome(bar), 0x070000);
	raw = sim_raw_open(1);
	ck_assert_uint_eq(syndrome(raw.bar), 0x070000);
	support_sim("heal *");
	ck_assert_uint_eq(syndrome(bar) | syndrome(raw.bar), 0);
	sim_raw_close(&raw);
	support_sim("page-request * 1"); /* passes over the closed one */
	ck_assert_int_eq(sim_turn_until_settled(ctx, 0), 0);
	ck_assert_uint_eq(support_stats(0).pages_given, 1);
	sim_close(&ctx, 0, 0);
}
END_TEST

START_TEST(refused_lines)
{
	static const struct {
		const char *line;
		int error;
	} refused[] = {
		{ "nonsense 0", -EINVAL },
		{ "fatal", -EINVAL },
		{ "fatal x", -EINVAL },
		{ "fatal 0 0x100", -EINVAL },
		{ "fatal 0 1 2 3", -EINVAL },
		{ "fatal 2", -ENODEV },
		{ "delay 0 5", -EINVAL },
		{ "fail 0 zz 1", -EINVAL },
		{ "page-request 0 0", -EINVAL },
		{ "page-request 0 1 often", -EINVAL },
		{ "page-request 1 1", -ENETDOWN },
		{ "spurious 0 64", -EINVAL },
		{ "port 0 sideways", -EINVAL },
		{ "init-stuck 0 maybe", -EINVAL },
		{ "clock-step", -EINVAL },
		{ "clock-rate -1", -EINVAL },
		{ "settle 0", -EINVAL },
		{ NULL, -EINVAL },
	};
	char reply[512], line[300];

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		ck_assert_int_eq(mlx5vfio_sim_control(refused[i].line, reply, sizeof(reply)),
				 refused[i].error);
		ck_assert(!refused[i].line || reply[0]);
	}
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	ck_assert_int_eq(mlx5vfio_sim_control(line, NULL, 0), -EINVAL);
	ck_assert_int_eq(mlx5vfio_sim_control("  # a comment", NULL, 0), 0);
	ck_assert_int_eq(mlx5vfio_sim_control("heal 0 # the rest is one", NULL, 0), 0);
	ck_assert_int_eq(mlx5vfio_sim_control("settle 0 10s", NULL, 0), 0);
	sim_close(&ctx, 0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim faults");
	TCase *tcase = tcase_create("faults");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, set_up, clean_up);
	tcase_add_test(tcase, healthy);
	tcase_add_test(tcase, fatal);
	tcase_add_test(tcase, harmless_syndrome);
	tcase_add_test(tcase, nic_state);
	tcase_add_test(tcase, pci_offline);
	tcase_add_test(tcase, frozen_counter);
	tcase_add_test(tcase, foreign_reset);
	tcase_add_test(tcase, hang);
	tcase_add_test(tcase, delay);
	tcase_add_test(tcase, fail);
	tcase_add_test(tcase, lost_interrupt);
	tcase_add_test(tcase, spurious_interrupt);
	tcase_add_loop_test(tcase, cured_by_the_next_open, 0, CURABLE);
	tcase_add_loop_test(tcase, set_while_closed, 0, CURABLE);
	tcase_add_test(tcase, freeze_and_hang_end_with_the_opening);
	tcase_add_test(tcase, openings_that_fail);
	tcase_add_test(tcase, init_stuck);
	tcase_add_test(tcase, clock_step);
	tcase_add_test(tcase, clock_rate);
	tcase_add_test(tcase, every_device_at_once);
	tcase_add_test(tcase, refused_lines);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

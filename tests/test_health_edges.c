/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; light seconds=10 */
/*
 * What happens between two looks at a device: it dies and the program closes something before a tick
 * has seen it, its ctx is closed while something is still to be told, a report waits while the device
 * goes on dying.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mlx5vfio/eq.h>

#include "test_open.h"

#define INTERVAL_MS 20
#define LONG_MS     3600000

/* ms in which a call that does not wait for the device returns, on a busy machine too */
#define AT_ONCE 2000

/* ms in which anything that shall happen has happened */
#define PATIENCE 20000

/* Seconds after which a test is stuck in a call that waits for a dead device. */
#define STUCK   30

#define MAX_FDS 4

static struct {
	struct ibv_context *ctx; /* NULL when closed or closing */
	struct mlx5vfio *dev;    /* NULL when detached */
	struct mlx5vfio_eq *eq;
	int faults, warnings, errors, removals, closed, detached;
	struct mlx5vfio_health last;
	int error, closed_with, closing;
} run;

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	(void)dev;
	(void)arg;
	run.last = *health;
	if (health->fault != MLX5VFIO_OK)
		run.faults++;
	else
		run.warnings++;
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)dev;
	(void)arg;
	run.errors++;
	run.error = error;
}

/* From here on the ctx is the helper's. */
static int close_device(void)
{
	int err = mlx5vfio_close(run.dev);

	if (!err)
		run.ctx = NULL;
	return err;
}

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	(void)dev;
	(void)arg;
	run.removals++;
	run.closing = close_device();
	support_sim("clock-rate 1000");
}

static void on_closed(int error, void *arg)
{
	(void)arg;
	run.closed++;
	run.closed_with = error;
}

static void on_detached(void *arg)
{
	(void)arg;
	run.detached++;
	run.dev = NULL;
}

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	(void)eq;
	(void)event;
	(void)arg;
}

static void on_stuck(int number)
{
	static const char line[] = "stuck in a call that waits for the device\n";

	(void)number;
	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		_exit(2);
	_exit(EXIT_FAILURE);
}

/* Check's own handler of this signal kills the process group without a word. */
static void set_up(void)
{
	memset(&run, 0, sizeof(run));
	signal(SIGALRM, on_stuck);
	alarm(STUCK);
}

/* The next test finds device 0 closed, also after one that failed. */
static void clean_up(void)
{
	support_sim("heal 0");
	support_sim("clock-rate 1");
	if (run.dev)
		mlx5vfio_forget(run.dev);
	if (run.ctx)
		ibv_close_device(run.ctx);
	alarm(0);
}

static void turn(void)
{
	struct pollfd fds[MAX_FDS];
	int ms = mlx5vfio_timeout_ms(run.dev);
	int n = mlx5vfio_pollfds(run.dev, fds, MAX_FDS);
	int i;

	poll(fds, (nfds_t)n, ms < 0 || ms > INTERVAL_MS ? INTERVAL_MS : ms);
	for (i = 0; i < n && run.dev; i++)
		if (fds[i].revents)
			mlx5vfio_process(run.dev, fds[i].fd, fds[i].revents);
	if (run.dev && !mlx5vfio_timeout_ms(run.dev))
		mlx5vfio_process(run.dev, -1, 0);
}

/* Returns the number of turns. */
static int turn_for(int ms)
{
	int64_t until = support_now_ms() + ms;
	int turns = 0;

	for (; run.dev && support_now_ms() < until; turns++)
		turn();
	return turns;
}

static void turn_until(const int *count)
{
	int64_t late = support_now_ms() + PATIENCE;

	while (run.dev && !*count && support_now_ms() < late)
		turn();
	ck_assert_int_eq(*count, 1);
}

static void begin(int interval_ms)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
		.removal = on_removal,
		.closed = on_closed,
		.detached = on_detached,
	};

	run.dev = test_attach(0, &handlers, NULL);
	run.ctx = mlx5vfio_context(run.dev);
	ck_assert_uint_eq(mlx5vfio_features(run.dev), ALL_FEATURES);
	ck_assert_int_eq(mlx5vfio_set_interval(run.dev, interval_ms), 0);
	turn_for(2 * INTERVAL_MS);
}

static void open_queue(void)
{
	static const struct mlx5vfio_eq_attr attr = {
		.events = UINT64_C(1) << MLX5VFIO_EVENT_PORT_STATE_CHANGE,
	};

	run.eq = mlx5vfio_eq_open(run.dev, &attr, on_event, NULL);
	ck_assert_ptr_nonnull(run.eq);
}

static struct mlx5vfio_health look(void)
{
	struct mlx5vfio_health health;

	ck_assert_int_eq(mlx5vfio_get_health(run.dev, &health), 0);
	return health;
}

static struct mlx5vfio_stats counters(void)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(run.dev, &stats, sizeof(stats));
	return stats;
}

static void close_ctx(void)
{
	struct ibv_context *ctx = run.ctx;

	run.ctx = NULL;
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}

static const struct death {
	const char *command;
	enum mlx5vfio_fault fault;
} deaths[] = {
	{ "pci-offline 0", MLX5VFIO_PCI_OFFLINE },
	{ "nic-disabled 0", MLX5VFIO_NIC_DISABLED },
	{ "fatal 0", MLX5VFIO_FW_FATAL },
};

#define DEATHS (int)(sizeof(deaths) / sizeof(deaths[0]))

/* The end of a queue is a command, which never returns when the device does not answer. */

/* Begins with a queue on a device that died and that nobody has looked at since; returns the time. */
static int64_t die_unseen(const struct death *death, int interval_ms)
{
	begin(interval_ms);
	open_queue();
	turn_for(2 * INTERVAL_MS);
	support_sim("%s", death->command);
	return support_now_ms();
}

START_TEST(queue_of_an_unseen_death_is_closed)
{
	int64_t start = die_unseen(&deaths[_i], LONG_MS);

	mlx5vfio_eq_close(run.eq);
	ck_assert_int_lt(support_now_ms() - start, AT_ONCE);
	ck_assert_int_eq(run.faults, 0);
	mlx5vfio_set_interval(run.dev, INTERVAL_MS);
	turn_until(&run.faults);
	ck_assert_int_eq(run.last.fault, deaths[_i].fault);
}
END_TEST

START_TEST(unseen_death_is_detached)
{
	int64_t start = die_unseen(&deaths[_i], LONG_MS);

	mlx5vfio_detach(run.dev);
	ck_assert_int_lt(support_now_ms() - start, AT_ONCE);
	ck_assert_int_eq(run.detached, 1);
	ck_assert_int_eq(run.faults, 0);
}
END_TEST

START_TEST(unseen_death_is_forgotten)
{
	int64_t start = die_unseen(&deaths[_i], LONG_MS);

	mlx5vfio_forget(run.dev);
	ck_assert_int_lt(support_now_ms() - start, AT_ONCE);
	ck_assert_int_eq(run.detached, 1);
}
END_TEST

/* The helper must not wait for the command either, or .closed would never come. */
START_TEST(unseen_death_is_closed)
{
	int64_t start = die_unseen(&deaths[_i], LONG_MS);

	ck_assert_int_eq(close_device(), 0);
	ck_assert_int_lt(support_now_ms() - start, AT_ONCE);
	support_sim("clock-rate 1000");
	turn_until(&run.detached);
	ck_assert_int_eq(run.closed, 1);
	ck_assert_int_eq(run.closed_with, 0);
	ck_assert_int_eq(run.faults, 0);
}
END_TEST

/* Unplugged: the tick reads the kernel's request before it reads the registers. */
START_TEST(removal_of_a_device_that_went_offline)
{
	begin(INTERVAL_MS);
	if (_i)
		open_queue();
	support_sim("pci-offline 0");
	support_sim("remove-request 0");
	turn_until(&run.detached);
	ck_assert_int_eq(run.removals, 1);
	ck_assert_int_eq(run.closing, 0);
	ck_assert_int_eq(run.closed, 1);
	ck_assert_int_eq(run.closed_with, 0);
	ck_assert_int_eq(run.faults, 0);
}
END_TEST

/* The registers are unmapped with the ctx: what is told then must not be read there. */

START_TEST(ctx_closed_before_a_warning_was_told)
{
	begin(INTERVAL_MS);
	support_sim("syndrome 0 0x10");
	ck_assert(look().warning);
	ck_assert_int_eq(run.warnings, 0);
	close_ctx();
	turn_until(&run.errors);
	turn_for(3 * INTERVAL_MS);
	ck_assert_int_eq(run.error, -EBADF);
	ck_assert_int_eq(run.errors, 1);
	ck_assert_int_eq(run.warnings, 0);
	ck_assert_int_eq(run.faults, 0);
}
END_TEST

START_TEST(ctx_closed_before_a_fault_was_told)
{
	begin(INTERVAL_MS);
	support_sim("%s", deaths[_i].command);
	ck_assert_int_eq(look().fault, deaths[_i].fault);
	ck_assert_int_eq(run.faults, 0);
	support_sim("clock-rate 1000");
	close_ctx();
	turn_until(&run.faults);
	turn_for(3 * INTERVAL_MS);
	ck_assert_int_eq(run.faults, 1);
	ck_assert_int_eq(run.last.fault, deaths[_i].fault);
	ck_assert_uint_eq(run.last.fw_major, 22);
}
END_TEST

static void check_identity(const struct mlx5vfio_health *health, const struct mlx5vfio_health *at)
{
	ck_assert_uint_eq(health->fw_major, at->fw_major);
	ck_assert_uint_eq(health->fw_minor, at->fw_minor);
	ck_assert_uint_eq(health->fw_subminor, at->fw_subminor);
	ck_assert_uint_eq(health->hw_id, at->hw_id);
}

/* Firmware's last words would be lost when they were read only on the loop's next turn. */
START_TEST(report_is_of_the_moment_the_fault_was_found)
{
	struct mlx5vfio_health alive;

	begin(LONG_MS);
	alive = look();
	support_sim("fatal 0 8");
	ck_assert_int_eq(look().fault, MLX5VFIO_FW_FATAL);
	support_sim("pci-offline 0");
	turn_until(&run.faults);
	ck_assert_int_eq(run.last.fault, MLX5VFIO_FW_FATAL);
	ck_assert_uint_eq(run.last.synd, 8);
	ck_assert(run.last.recovery_request);
	check_identity(&run.last, &alive);
}
END_TEST

static void check_offline_report(const struct mlx5vfio_health *health,
				 const struct mlx5vfio_health *alive)
{
	ck_assert_int_eq(health->fault, MLX5VFIO_PCI_OFFLINE);
	check_identity(health, alive);
	ck_assert_uint_eq(health->synd, 0);
	ck_assert_uint_eq(health->ext_synd, 0);
	ck_assert_uint_eq(health->assert_var[0], 0);
	ck_assert(!health->recovery_request);
	ck_assert(!health->warning);
}

/* All ones are no firmware version and no syndrome. */
START_TEST(report_of_a_device_off_the_bus)
{
	struct mlx5vfio_health alive, health;

	begin(INTERVAL_MS);
	alive = look();
	ck_assert_uint_eq(alive.fw_major, 22);
	ck_assert_uint_eq(alive.hw_id, 0x212);
	support_sim("pci-offline 0");
	turn_until(&run.faults);
	check_offline_report(&run.last, &alive);
	health = look();
	check_offline_report(&health, &alive);
}
END_TEST

/* The time until a call may be made counts, not the retry that is due meanwhile. */
START_TEST(held_retry_does_not_spin)
{
	struct mlx5vfio_stats before, after;
	int turns;

	begin(MLX5VFIO_DEFAULT_INTERVAL);
	support_sim("fail 0 108 6 1000");
	support_sim("page-request 0 4 10");
	turn_until(&run.errors);
	/* libmlx5's misses are unknown to the guard that is switched on, so it waits for the counter. */
	support_sim("freeze 0");
	ck_assert_int_eq(mlx5vfio_set_guard(run.dev, false), 0);
	ck_assert_int_eq(mlx5vfio_set_guard(run.dev, true), 0);
	before = counters();
	turns = turn_for(1000);
	after = counters();
	printf("a held retry: %d turns, %d samples, %d times put off in a second\n", turns,
	       (int)(after.samples - before.samples), (int)(after.deferred - before.deferred));
	ck_assert_int_eq(run.faults, 0);
	ck_assert_uint_ge(after.deferred - before.deferred, 10);
	ck_assert_int_lt(turns, 200);
	ck_assert_uint_lt(after.samples - before.samples, 200);
}
END_TEST

/* No tick came that would have ended the five seconds in which a PCI error is to blame. */
START_TEST(pci_error_is_not_blamed_for_ever)
{
	begin(INTERVAL_MS);
	support_sim("aer 0");
	turn_until(&run.warnings);
	poll(NULL, 0, 5100);
	support_sim("nic-disabled 0");
	ck_assert_int_eq(look().fault, MLX5VFIO_NIC_DISABLED);
	turn_until(&run.faults);
	ck_assert_int_eq(run.last.fault, MLX5VFIO_NIC_DISABLED);
}
END_TEST

static void check_no_guard_to_set(void)
{
	ck_assert_int_eq(mlx5vfio_set_guard(run.dev, false), -ENOTSUP);
	ck_assert_int_eq(mlx5vfio_set_guard(run.dev, true), -ENOTSUP);
}

START_TEST(guard_of_a_dead_device)
{
	begin(INTERVAL_MS);
	support_sim("%s", deaths[_i].command);
	look();
	check_no_guard_to_set();
	turn_until(&run.faults);
	check_no_guard_to_set();
	ck_assert_int_eq(look().fault, deaths[_i].fault);
}
END_TEST

START_TEST(guard_of_a_closing_device)
{
	begin(INTERVAL_MS);
	ck_assert_int_eq(close_device(), 0);
	check_no_guard_to_set();
	turn_until(&run.detached);
	ck_assert_int_eq(run.closed, 1);
}
END_TEST

/* Switching it on reads the registers. */
START_TEST(guard_of_a_closed_ctx)
{
	begin(INTERVAL_MS);
	ck_assert_int_eq(mlx5vfio_set_guard(run.dev, false), 0);
	close_ctx();
	check_no_guard_to_set();
}
END_TEST

static const char *const calls[] = { "set_interval", "set_guard", "process",
				     "close",        "detach",    "eq_open" };

#define CALLS (int)(sizeof(calls) / sizeof(calls[0]))

START_TEST(call_from_a_wrong_thread)
{
	const char *const argv[] = { "prog_health_thread", calls[_i], NULL };
	char output[512];
	int status = support_finish(support_start(argv), output, sizeof(output));

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return;
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s: status 0x%x: %s",
		      calls[_i], (unsigned)status, output);
	ck_assert_str_eq(output,
			 "mlx5vfio: a device is used from another thread than its loop's\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("health, edges");
	TCase *tcase = tcase_create("edges");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, set_up, clean_up);
	tcase_add_loop_test(tcase, queue_of_an_unseen_death_is_closed, 0, DEATHS);
	tcase_add_loop_test(tcase, unseen_death_is_detached, 0, DEATHS);
	tcase_add_loop_test(tcase, unseen_death_is_forgotten, 0, DEATHS);
	tcase_add_loop_test(tcase, unseen_death_is_closed, 0, DEATHS);
	tcase_add_loop_test(tcase, removal_of_a_device_that_went_offline, 0, 2);
	tcase_add_test(tcase, ctx_closed_before_a_warning_was_told);
	tcase_add_loop_test(tcase, ctx_closed_before_a_fault_was_told, 0, DEATHS);
	tcase_add_test(tcase, report_is_of_the_moment_the_fault_was_found);
	tcase_add_test(tcase, report_of_a_device_off_the_bus);
	tcase_add_test(tcase, held_retry_does_not_spin);
	tcase_add_test(tcase, pci_error_is_not_blamed_for_ever);
	tcase_add_loop_test(tcase, guard_of_a_dead_device, 0, DEATHS);
	tcase_add_test(tcase, guard_of_a_closing_device);
	tcase_add_test(tcase, guard_of_a_closed_ctx);
	tcase_add_loop_test(tcase, call_from_a_wrong_thread, 0, CALLS);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

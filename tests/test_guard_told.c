/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; valgrind light seconds=23 */
/*
 * Who hears of a device's health, when, and how often: warnings, faults seen first by each of the
 * paths that look, the decoded registers, the guard switched off, and no handler at all.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <mlx5vfio/core.h>

#include "support/support.h"

#define INTERVAL_MS 20
#define LONG_MS     3600000

static struct {
	struct ibv_context *ctx;
	struct mlx5vfio *dev; /* NULL after a detach */
	bool detach_inside;
	bool close_inside;
	int faults, warnings, all_clears, detached;
	struct mlx5vfio_health last;
} run;

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	(void)arg;
	run.last = *health;
	if (health->fault != MLX5VFIO_OK)
		run.faults++;
	else if (health->warning)
		run.warnings++;
	else
		run.all_clears++;
	if (health->fault == MLX5VFIO_OK || !run.detach_inside)
		return;
	run.dev = NULL;
	mlx5vfio_detach(dev);
	if (!run.close_inside)
		return;
	/* Closing the dead device takes libmlx5 240 s. */
	support_sim("heal 0");
	support_sim("spurious 0");
	ck_assert_int_eq(ibv_close_device(run.ctx), 0);
	run.ctx = NULL;
}

static void on_detached(void *arg)
{
	(void)arg;
	run.detached++;
}

static void begin(int interval_ms)
{
	static const struct mlx5vfio_handlers handlers = { .health = on_health,
							   .detached = on_detached };

	memset(&run, 0, sizeof(run));
	run.ctx = support_open(0);
	run.dev = mlx5vfio_attach(run.ctx, NULL, NULL);
	ck_assert_ptr_nonnull(run.dev);
	ck_assert(mlx5vfio_guarded(run.dev));
	mlx5vfio_set_handlers(run.dev, &handlers, NULL);
	ck_assert_int_eq(mlx5vfio_set_interval(run.dev, interval_ms), 0);
}

static void end(void)
{
	mlx5vfio_detach(run.dev);
	ck_assert_int_eq(run.detached, 1);
	if (!run.ctx)
		return;
	support_sim("heal 0");
	support_sim("spurious 0");
	ck_assert_int_eq(ibv_close_device(run.ctx), 0);
}

static void turn(void)
{
	struct pollfd fd;
	int timeout = mlx5vfio_timeout_ms(run.dev);
	int n = mlx5vfio_pollfds(run.dev, &fd, 1);

	poll(&fd, (nfds_t)n, timeout < 0 || timeout > INTERVAL_MS ? INTERVAL_MS : timeout);
	if (n && fd.revents)
		ck_assert_int_eq(mlx5vfio_process(run.dev, fd.fd, fd.revents), 0);
	if (run.dev && !mlx5vfio_timeout_ms(run.dev))
		ck_assert_int_eq(mlx5vfio_process(run.dev, -1, 0), 0);
}

static void turn_for(int ms)
{
	int64_t until = support_now_ms() + ms;

	while (run.dev && support_now_ms() < until)
		turn();
}

static void event(void)
{
	struct pollfd fd;

	if (mlx5vfio_pollfds(run.dev, &fd, 1))
		ck_assert_int_eq(mlx5vfio_process(run.dev, fd.fd, POLLIN), 0);
}

static uint64_t calls(void)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(run.dev, &stats, sizeof(stats));
	return stats.calls;
}

START_TEST(warning_is_told_once_and_so_is_its_end)
{
	uint64_t before;

	begin(INTERVAL_MS);
	turn_for(50);
	ck_assert_int_eq(run.warnings + run.all_clears + run.faults, 0);

	support_sim("syndrome 0 0x8 0x1234");
	turn_for(200);
	ck_assert_int_eq(run.warnings, 1);
	ck_assert(run.last.warning);
	ck_assert_uint_eq(run.last.synd, 8);
	ck_assert_uint_eq(run.last.ext_synd, 0x1234);
	ck_assert(!run.last.recovery_request);

	/* Processing goes on. */
	before = calls();
	support_sim("page-request 0 2");
	turn_for(200);
	ck_assert_uint_gt(calls(), before);
	ck_assert_uint_eq(support_stats(0).pages_given, 2);
	ck_assert_int_eq(run.warnings, 1);

	support_sim("syndrome 0 0x9");
	turn_for(200);
	ck_assert_int_eq(run.warnings, 2);
	ck_assert_uint_eq(run.last.synd, 9);

	support_sim("syndrome 0 0");
	turn_for(200);
	ck_assert_int_eq(run.all_clears, 1);
	ck_assert(!run.last.warning);
	ck_assert_uint_eq(run.last.synd, 0);
	ck_assert_int_eq(run.faults, 0);
	ck_assert_int_eq(run.warnings, 2);
	end();
}
END_TEST

START_TEST(warning_may_turn_into_a_fault)
{
	begin(INTERVAL_MS);
	support_sim("syndrome 0 0x8");
	turn_for(100);
	support_sim("fatal 0 0x8");
	turn_for(200);
	ck_assert_int_eq(run.warnings, 1);
	ck_assert_int_eq(run.faults, 1);
	ck_assert_int_eq(run.last.fault, MLX5VFIO_FW_FATAL);
	ck_assert(!run.last.warning);
	end();
}
END_TEST

START_TEST(get_health_decodes_the_registers)
{
	struct mlx5vfio_health health;
	uint32_t counter;
	unsigned i;

	begin(LONG_MS);
	ck_assert_int_eq(mlx5vfio_get_health(run.dev, &health), 0);
	ck_assert_int_eq(health.fault, MLX5VFIO_OK);
	ck_assert(!health.warning && !health.recovery_request);
	ck_assert_uint_eq(health.fw_major, 22);
	ck_assert_uint_eq(health.fw_minor, 39);
	ck_assert_uint_eq(health.fw_subminor, 1002);
	ck_assert_uint_eq(health.hw_id, 0x212);
	ck_assert_uint_eq(health.synd, 0);
	ck_assert_uint_eq(health.assert_var[0], 0);
	counter = health.counter;

	support_sim("syndrome 0 0x9 0xabcd");
	poll(NULL, 0, 50);
	ck_assert_int_eq(mlx5vfio_get_health(run.dev, &health), 0);
	ck_assert(health.warning);
	ck_assert_uint_eq(health.synd, 9);
	ck_assert_uint_eq(health.ext_synd, 0xabcd);
	ck_assert_uint_eq(health.irisc_index, 1);
	for (i = 0; i < 5; i++)
		ck_assert_uint_eq(health.assert_var[i], 0xa55e0900 + i);
	ck_assert_uint_eq(health.assert_exit_ptr, 0x20e5e100);
	ck_assert_uint_eq(health.assert_callra, 0x20ca11a0);
	ck_assert_uint_ne(health.counter, counter);
	ck_assert_uint_lt(health.unmoved_ms, 2000);

	ck_assert_int_eq(mlx5vfio_get_health(run.dev, NULL), -EINVAL);
	ck_assert_int_eq(mlx5vfio_get_health(NULL, &health), -EINVAL);
	end();
}
END_TEST

START_TEST(get_health_tells_how_long_the_counter_stands)
{
	struct mlx5vfio_health health;

	begin(INTERVAL_MS);
	turn_for(50);
	support_sim("freeze 0");
	turn_for(700);
	ck_assert_int_eq(mlx5vfio_get_health(run.dev, &health), 0);
	ck_assert_int_eq(health.fault, MLX5VFIO_OK);
	ck_assert_uint_ge(health.unmoved_ms, 600);
	ck_assert_int_eq(run.faults, 0);
	end();
}
END_TEST

START_TEST(get_health_of_a_closed_ctx_fails)
{
	struct mlx5vfio_health health;

	begin(LONG_MS);
	ck_assert_int_eq(ibv_close_device(run.ctx), 0);
	run.ctx = NULL;
	ck_assert_int_eq(mlx5vfio_get_health(run.dev, &health), -EBADF);
	ck_assert_uint_eq(health.fw_major, 0);
	end();
}
END_TEST

/* The paths that look, by what looks first. */

static void check_told_once(enum mlx5vfio_fault fault)
{
	uint64_t before = calls();

	ck_assert_int_eq(run.faults, 1);
	ck_assert_int_eq(run.last.fault, fault);
	ck_assert_int_eq(mlx5vfio_pollfds(run.dev, NULL, 0), 0);
	ck_assert_int_eq(mlx5vfio_timeout_ms(run.dev), -1);
	mlx5vfio_process(run.dev, mlx5dv_vfio_get_events_fd(run.ctx), POLLIN);
	mlx5vfio_process(run.dev, -1, 0);
	turn_for(60);
	ck_assert_int_eq(run.faults, 1);
	ck_assert_uint_eq(calls(), before);
}

/* The tick is an hour away; a second later libmlx5 would check, and so must we. */
START_TEST(fd_event_sees_it_first)
{
	begin(LONG_MS);
	event();
	turn_for(30);
	support_sim("nic-disabled 0");
	support_sim("clock-step 1000");
	event();
	check_told_once(MLX5VFIO_NIC_DISABLED);
	end();
}
END_TEST

START_TEST(tick_sees_it_first)
{
	begin(INTERVAL_MS);
	turn_for(50);
	support_sim("pci-offline 0");
	turn_for(5 * INTERVAL_MS);
	check_told_once(MLX5VFIO_PCI_OFFLINE);
	ck_assert_uint_eq(run.last.fw_major, 22); /* as it was at the attach */
	end();
}
END_TEST

START_TEST(get_health_sees_it_first)
{
	struct mlx5vfio_health health;

	begin(LONG_MS);
	turn_for(30);
	support_sim("fatal 0 0x1 0x77");
	ck_assert_int_eq(mlx5vfio_get_health(run.dev, &health), 0);
	ck_assert_int_eq(health.fault, MLX5VFIO_FW_FATAL);
	ck_assert(health.recovery_request);
	ck_assert_uint_eq(health.ext_synd, 0x77);
	ck_assert_int_eq(run.faults, 0);
	ck_assert_int_eq(mlx5vfio_timeout_ms(run.dev), 0);
	ck_assert_int_eq(mlx5vfio_get_health(run.dev, &health), 0);
	turn();
	ck_assert_int_eq(health.fault, MLX5VFIO_FW_FATAL);
	check_told_once(MLX5VFIO_FW_FATAL);
	ck_assert_int_eq(mlx5vfio_get_health(run.dev, &health), 0);
	ck_assert_int_eq(health.fault, MLX5VFIO_FW_FATAL);
	end();
}
END_TEST

/* Without a tick, and nobody else looking. */
START_TEST(attach_sees_it_first)
{
	static const struct mlx5vfio_handlers handlers = { .health = on_health,
							   .detached = on_detached };

	memset(&run, 0, sizeof(run));
	run.ctx = support_open(0);
	support_sim("nic-reset 0");
	run.dev = mlx5vfio_attach(run.ctx, NULL, NULL);
	ck_assert_ptr_nonnull(run.dev);
	mlx5vfio_set_handlers(run.dev, &handlers, NULL);
	ck_assert_int_eq(run.faults, 0);
	turn();
	check_told_once(MLX5VFIO_NIC_RESET);
	end();
}
END_TEST

/* By every path: the handler detaches, and in the second half closes as well. */
START_TEST(handler_detaches_and_closes)
{
	struct mlx5vfio_health health;

	begin(_i % 3 == 1 ? INTERVAL_MS : LONG_MS);
	run.detach_inside = true;
	run.close_inside = _i >= 3;
	event();
	turn_for(30);
	support_sim("fatal 0");
	if (_i % 3 == 2)
		ck_assert_int_eq(mlx5vfio_get_health(run.dev, &health), 0);
	if (_i % 3 == 0)
		support_sim("clock-step 1000");
	if (_i % 3 == 0)
		event();
	else
		turn_for(1000);
	ck_assert_ptr_null(run.dev);
	ck_assert_int_eq(run.faults, 1);
	ck_assert_int_eq(run.detached, 1);
	end();
}
END_TEST

/* What may cost a process its life happens in a child. */

static int child(const char *what, char *output, size_t size)
{
	const char *const argv[] = { "prog_guard_child", what, NULL };

	return support_finish(support_start(argv), output, size);
}

START_TEST(no_handler_means_one_line)
{
	char output[1024];
	const char *rest;
	int status = child("silent", output, sizeof(output));

	ck_assert_int_eq(status, 0);
	ck_assert_ptr_eq(strstr(output, "mlx5vfio: device is dead: fatal firmware error"), output);
	rest = strchr(output, '\n');
	ck_assert_ptr_nonnull(rest);
	ck_assert_str_eq(rest, "\nalive, told 0\n");
}
END_TEST

START_TEST(guard_off_means_abort)
{
	char output[256];
	int status = child("off", output, sizeof(output));

	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	ck_assert_ptr_null(strstr(output, "NIC"));
}
END_TEST

static const struct survivor {
	const char *what;
	const char *output;
} survivors[] = {
	{ "on", "NIC interface disabled\nalive, told 1\n" },
	{ "stall-off", "health counter stalled\nalive, told 1\n" },
	{ "late", "health counter stalled\nalive, told 1\n" },
	{ "close", "PCI offline\nalive, told 1\n" },
};

START_TEST(child_lives_and_is_told)
{
	char output[256];
	int status = child(survivors[_i].what, output, sizeof(output));

	ck_assert_msg(!status, "%s: status 0x%x", survivors[_i].what, (unsigned)status);
	ck_assert_str_eq(output, survivors[_i].output);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard, who is told");
	TCase *tcase = tcase_create("told");

	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, warning_is_told_once_and_so_is_its_end);
	tcase_add_test(tcase, warning_may_turn_into_a_fault);
	tcase_add_test(tcase, get_health_decodes_the_registers);
	tcase_add_test(tcase, get_health_tells_how_long_the_counter_stands);
	tcase_add_test(tcase, get_health_of_a_closed_ctx_fails);
	tcase_add_test(tcase, fd_event_sees_it_first);
	tcase_add_test(tcase, tick_sees_it_first);
	tcase_add_test(tcase, get_health_sees_it_first);
	tcase_add_test(tcase, attach_sees_it_first);
	tcase_add_loop_test(tcase, handler_detaches_and_closes, 0, 6);
	tcase_add_test(tcase, no_handler_means_one_line);
	tcase_add_test(tcase, guard_off_means_abort);
	tcase_add_loop_test(tcase, child_lives_and_is_told, 0,
			    (int)(sizeof(survivors) / sizeof(survivors[0])));
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

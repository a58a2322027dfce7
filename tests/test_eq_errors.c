/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; valgrind */
/* What opening an event queue is refused for, and that nothing is left of the attempt. */
#include <signal.h>
#include <sys/time.h>

#include "test_eq.h"

#define PORT             BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE)
#define VECTORS          63 /* 64 less libmlx5's own */

#define OPCODE_CREATE_EQ 0x301

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	(void)eq;
	(void)event;
	++*(int *)arg;
}

static int errno_of(struct mlx5vfio *dev, const struct mlx5vfio_eq_attr *attr,
		    mlx5vfio_event_fn *handler)
{
	struct mlx5vfio_eq *eq;
	int fds = support_open_fds(), count = 0;

	errno = 0;
	eq = mlx5vfio_eq_open(dev, attr, handler, &count);
	if (eq)
		return 0;
	ck_assert_int_ne(errno, 0);
	ck_assert_int_eq(support_open_fds(), fds);
	return errno;
}

START_TEST(arguments)
{
	static const struct mlx5vfio_eq_attr good = { .events = PORT };
	static const struct mlx5vfio_eq_attr wrong[] = {
		{ .log_size = 1 },        { .log_size = 3 },       { .log_size = 17 },
		{ .log_size = ~0u },      { .events = BIT(0x0a) }, { .events = BIT(0x0b) | PORT },
		{ .events = UINT64_MAX },
	};
	struct test_loop loop;
	size_t i;

	test_loop_start(&loop, LOOP_POLL, 0);
	ck_assert_int_eq(errno_of(NULL, &good, on_event), EINVAL);
	ck_assert_int_eq(errno_of(loop.dev, NULL, on_event), EINVAL);
	ck_assert_int_eq(errno_of(loop.dev, &good, NULL), EINVAL);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_int_eq(errno_of(loop.dev, &wrong[i], on_event), EINVAL);
	mlx5vfio_eq_close(NULL);
	ck_assert_uint_eq(mlx5vfio_eq_number(NULL), 0);
	ck_assert_ptr_null(mlx5vfio_eq_device(NULL));
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, NULL, 0), 1);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

/* All that is in range, to both ends. */
START_TEST(all_sizes)
{
	static const unsigned sizes[] = { 0, 4, 8, 16 };
	struct mlx5vfio_eq_attr attr = { .budget = 1, .events = UINT64_MAX & ~(BIT(10) | BIT(11)) };
	struct test_loop loop;
	int count = 0;
	size_t i;

	test_loop_start(&loop, LOOP_UV, 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct mlx5vfio_eq *eq;

		attr.log_size = sizes[i];
		eq = mlx5vfio_eq_open(loop.dev, &attr, on_event, &count);
		ck_assert_ptr_nonnull(eq);
		support_sim("port 0 up");
		test_turn_until(&loop, &count, (int)i + 1);
		mlx5vfio_eq_close(eq);
	}
	test_loop_finish(&loop, 0, 0);
}
END_TEST

START_TEST(dead_or_closing)
{
	static const struct mlx5vfio_eq_attr attr = { .events = PORT };
	struct test_loop loop;

	test_loop_start(&loop, LOOP_UV, 0);
	mlx5vfio_set_interval(loop.dev, 20);
	support_sim("fatal 0");
	test_turn_until(&loop, &loop.faults, 1);
	ck_assert_int_eq(errno_of(loop.dev, &attr, on_event), ENODEV);
	support_sim("heal 0");
	ck_assert_int_eq(errno_of(loop.dev, &attr, on_event), ENODEV);
	ck_assert_int_eq(mlx5vfio_close(loop.dev), 0);
	ck_assert_int_eq(errno_of(loop.dev, &attr, on_event), ENODEV);
	test_turn_until(&loop, &loop.detached, 1);
	test_loop_end(&loop);
}
END_TEST

/* A command would wait for ever. */
START_TEST(dead_unnoticed)
{
	static const struct mlx5vfio_eq_attr attr = { .events = PORT };
	struct test_loop loop;

	test_loop_start(&loop, LOOP_UV, 0);
	support_sim("pci-offline 0");
	ck_assert_int_eq(errno_of(loop.dev, &attr, on_event), ENODEV);
	test_turn_until(&loop, &loop.faults, 1);
	support_sim("heal 0");
	mlx5vfio_detach(loop.dev);
	test_turn(&loop, 1);
	test_close(&loop);
	test_loop_end(&loop);
}
END_TEST

START_TEST(ctx_closed)
{
	static const struct mlx5vfio_eq_attr attr = { .events = PORT };
	struct test_loop loop;

	test_loop_start(&loop, LOOP_POLL, 0);
	test_close(&loop);
	ck_assert_int_eq(errno_of(loop.dev, &attr, on_event), EBADF);
	mlx5vfio_detach(loop.dev);
	test_loop_end(&loop);
}
END_TEST

/* One more than there are vectors; all others work, and room is made by closing any. */
START_TEST(all_vectors)
{
	static const struct mlx5vfio_eq_attr attr = { .log_size = 4, .events = PORT };
	struct mlx5vfio_eq *eqs[VECTORS];
	int opened, count = 0;
	struct test_loop loop;

	test_loop_start(&loop, LOOP_POLL, 0);
	for (opened = 0; opened < VECTORS; opened++) {
		eqs[opened] = mlx5vfio_eq_open(loop.dev, &attr, on_event, &count);
		ck_assert_ptr_nonnull(eqs[opened]);
	}
	ck_assert_int_eq(errno_of(loop.dev, &attr, on_event), ENOSPC);
	support_sim("port 0 up");
	test_turn_until(&loop, &count, opened);
	mlx5vfio_eq_close(eqs[7]);
	eqs[7] = mlx5vfio_eq_open(loop.dev, &attr, on_event, &count);
	ck_assert_ptr_nonnull(eqs[7]);
	test_turn_for(&loop, TEST_SILENCE);
	ck_assert_int_eq(count, opened);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

START_TEST(device_refuses)
{
	static const struct mlx5vfio_eq_attr attr = { .events = PORT };
	struct test_loop loop;

	test_loop_start(&loop, LOOP_POLL, 0);
	support_sim("fail 0 %x 3", OPCODE_CREATE_EQ);
	ck_assert_int_eq(errno_of(loop.dev, &attr, on_event), EREMOTEIO);
	support_sim("map-fail 0");
	ck_assert_int_eq(errno_of(loop.dev, &attr, on_event), ENOMEM);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

/* A loop that takes the device's fd and no other. */
struct stingy {
	int fds, refuse, released;
	struct mlx5vfio *dev;
};

static int stingy_watch(void *arg, int fd, int events)
{
	struct stingy *loop = arg;

	(void)fd;
	if (events && loop->refuse)
		return -loop->refuse;
	loop->fds += events ? 1 : -1;
	return 0;
}

static int stingy_timer(void *arg, int timeout_ms)
{
	(void)arg;
	(void)timeout_ms;
	return 0;
}

static void stingy_release(void *arg)
{
	struct stingy *loop = arg;

	loop->released++;
	mlx5vfio_released(loop->dev);
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* Handlers run all the time on a loop's thread; libmlx5 gives a command up when one does. */
START_TEST(among_signals)
{
	static const struct itimerval every_ms = { { 0, 1000 }, { 0, 1000 } }, never;
	static const struct mlx5vfio_eq_attr attr = { .log_size = 4, .events = PORT };
	struct test_loop loop;
	uint64_t maps;
	int i, count = 0;

	test_loop_start(&loop, LOOP_POLL, 0);
	maps = support_stats(0).dma_maps;
	signal(SIGALRM, on_alarm);
	support_sim("delay 0 3ms");
	setitimer(ITIMER_REAL, &every_ms, NULL);
	for (i = 0; i < 10; i++) {
		struct mlx5vfio_eq *eq = mlx5vfio_eq_open(loop.dev, &attr, on_event, &count);

		ck_assert_msg(eq != NULL, "errno %d", errno);
		mlx5vfio_eq_close(eq);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	support_sim("delay 0 0ms");
	ck_assert_uint_eq(support_stats(0).dma_maps, maps);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

START_TEST(watch_fails)
{
	static const struct mlx5vfio_loop_ops ops = {
		.name = "stingy",
		.watch = stingy_watch,
		.timer = stingy_timer,
		.release = stingy_release,
	};
	static const struct mlx5vfio_eq_attr attr = { .events = PORT };
	struct ibv_context *ctx = support_open(0);
	struct stingy loop = { .refuse = 0 };
	struct mlx5vfio_eq *eq;
	uint64_t maps;
	int count = 0;

	loop.dev = mlx5vfio_attach(ctx, &ops, &loop);
	ck_assert_ptr_nonnull(loop.dev);
	ck_assert_int_eq(loop.fds, 1);
	maps = support_stats(0).dma_maps;
	loop.refuse = EMFILE;
	ck_assert_int_eq(errno_of(loop.dev, &attr, on_event), EMFILE);
	ck_assert_uint_eq(support_stats(0).dma_maps, maps);
	loop.refuse = 0;
	eq = mlx5vfio_eq_open(loop.dev, &attr, on_event, &count);
	ck_assert_ptr_nonnull(eq);
	ck_assert_int_eq(loop.fds, 2);
	mlx5vfio_eq_close(eq);
	ck_assert_int_eq(loop.fds, 1);
	eq = mlx5vfio_eq_open(loop.dev, &attr, on_event, &count);
	ck_assert_ptr_nonnull(eq);
	mlx5vfio_detach(loop.dev);
	ck_assert_int_eq(loop.released, 1);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	ck_assert_uint_eq(support_stats(0).violations, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("eq errors");
	TCase *tcase = tcase_create("errors");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, test_clean_up);
	tcase_add_test(tcase, arguments);
	tcase_add_test(tcase, all_sizes);
	tcase_add_test(tcase, dead_or_closing);
	tcase_add_test(tcase, dead_unnoticed);
	tcase_add_test(tcase, ctx_closed);
	tcase_add_test(tcase, all_vectors);
	tcase_add_test(tcase, device_refuses);
	tcase_add_test(tcase, among_signals);
	tcase_add_test(tcase, watch_fails);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

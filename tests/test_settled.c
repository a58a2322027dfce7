/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; valgrind */
/*
 * A device with nothing to tell and nothing to wait for takes a short way to an event. What ends that
 * state ends the short way, also for a loop that hands over an event late.
 */
#include <signal.h>
#include <unistd.h>

#include <mlx5vfio/eq.h>

#include "support/support.h"

#define EVENTS 20

struct settled {
	struct ibv_context *ctx;
	struct mlx5vfio *dev;
	int fd, errors, detached;
};

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)dev;
	(void)error;
	((struct settled *)arg)->errors++;
}

static void on_detached(void *arg)
{
	((struct settled *)arg)->detached++;
}

static struct mlx5vfio_stats stats_of(const struct settled *settled)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(settled->dev, &stats, sizeof(stats));
	return stats;
}

static void settle(struct settled *settled)
{
	static const struct mlx5vfio_handlers handlers = {
		.error = on_error,
		.detached = on_detached,
	};
	struct pollfd fd;
	int i;

	/* its past is known: no call is put off */
	*settled = (struct settled){ .ctx = mlx5vfio_open("0000:b0:00.0", 0, NULL, 0) };
	ck_assert_ptr_nonnull(settled->ctx);
	settled->dev = mlx5vfio_attach(settled->ctx, NULL, NULL);
	ck_assert_ptr_nonnull(settled->dev);
	mlx5vfio_set_handlers(settled->dev, &handlers, settled);
	ck_assert_int_eq(mlx5vfio_pollfds(settled->dev, &fd, 1), 1);
	settled->fd = fd.fd;
	for (i = 0; i < EVENTS; i++)
		ck_assert_int_eq(mlx5vfio_process(settled->dev, settled->fd, POLLIN), 0);
	ck_assert_uint_eq(stats_of(settled).wakeups, EVENTS);
	ck_assert_uint_eq(stats_of(settled).calls, EVENTS);
	ck_assert_int_eq(settled->errors, 0);
}

START_TEST(late_event_after_close)
{
	struct settled settled;
	struct pollfd fd;
	uint64_t calls;

	settle(&settled);
	calls = stats_of(&settled).calls;
	ck_assert_int_eq(mlx5vfio_close(settled.dev), 0);
	mlx5vfio_process(settled.dev, settled.fd, POLLIN);
	ck_assert_uint_eq(stats_of(&settled).calls, calls);
	while (!settled.detached) {
		ck_assert_int_eq(mlx5vfio_pollfds(settled.dev, &fd, 1), 1);
		ck_assert_int_eq(poll(&fd, 1, 20000), 1);
		mlx5vfio_process(settled.dev, fd.fd, fd.revents);
	}
}
END_TEST

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	(void)eq;
	if (event->type == MLX5VFIO_EVENT_QUEUE_OVERRUN)
		++*(int *)arg;
}

static int fd_of_queue(const struct settled *settled)
{
	struct pollfd fds[4];
	int n = mlx5vfio_pollfds(settled->dev, fds, 4);

	ck_assert_int_ge(n, 2);
	return fds[n - 1].fd;
}

/* An error is told once per change: successes in between are a change. */
START_TEST(told_again_after_successes)
{
	static const struct mlx5vfio_eq_attr attr = { .log_size = 4 };
	struct settled settled;
	int round, i;

	settle(&settled);
	for (round = 1; round <= 3; round++) {
		ck_assert_ptr_nonnull(mlx5vfio_eq_open(settled.dev, &attr, on_event, NULL));
		mlx5vfio_process(settled.dev, fd_of_queue(&settled), POLLERR);
		ck_assert_int_eq(settled.errors, round);
		for (i = 0; i < EVENTS; i++)
			mlx5vfio_process(settled.dev, settled.fd, POLLIN);
		ck_assert_int_eq(settled.errors, round);
	}
	mlx5vfio_detach(settled.dev);
	ck_assert_int_eq(ibv_close_device(settled.ctx), 0);
}
END_TEST

static void on_signal(int number)
{
	(void)number;
}

static void expect_mask(const sigset_t *expected)
{
	sigset_t now;
	int number;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	for (number = 1; number <= SIGRTMAX; number++)
		ck_assert_int_eq(sigismember(&now, number), sigismember(expected, number));
}

/* Signals with handlers are blocked while a queue's commands run, and only then. */
START_TEST(signals_stay_as_they_were)
{
	static const struct mlx5vfio_eq_attr attr = { .log_size = 4, .events = 1 << 9 };
	sigset_t mask;
	struct settled settled;
	struct mlx5vfio_eq *eq;
	int i, n, overruns = 0;

	settle(&settled);
	signal(SIGUSR1, on_signal);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	mlx5vfio_set_interval(settled.dev, 10);
	for (i = 0; i < 3; i++) {
		eq = mlx5vfio_eq_open(settled.dev, &attr, on_event, &overruns);
		ck_assert_ptr_nonnull(eq);
		expect_mask(&mask);
		for (n = 0; n < 17; n++) /* one too many: the tick asks about the queue */
			support_sim("port 0 up");
		mlx5vfio_process(settled.dev, fd_of_queue(&settled), POLLIN);
		usleep(20000);
		mlx5vfio_process(settled.dev, -1, 0);
		ck_assert_int_eq(overruns, i + 1);
		expect_mask(&mask);
		mlx5vfio_eq_close(eq);
		expect_mask(&mask);
	}
	mlx5vfio_detach(settled.dev);
	ck_assert_int_eq(ibv_close_device(settled.ctx), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("settled");
	TCase *tcase = tcase_create("settled");

	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, late_event_after_close);
	tcase_add_test(tcase, told_again_after_successes);
	tcase_add_test(tcase, signals_stay_as_they_were);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

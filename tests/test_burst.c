/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 2; valgrind light seconds=10 */
/* Calls that fail and leave entries behind: a burst at its real size, and settings changed meanwhile. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include <mlx5vfio/core.h>

#include "support/support.h"

static struct {
	struct ibv_context *ctx;
	struct mlx5vfio *dev;
	int errors;
	int error;
	int close_result; /* of a close inside .error */
	bool close_in_error;
} run;

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)arg;
	run.errors++;
	run.error = error;
	if (run.close_in_error)
		run.close_result = mlx5vfio_close(dev);
}

static void begin(void)
{
	static const struct mlx5vfio_handlers handlers = { .error = on_error };

	run.errors = 0;
	run.close_in_error = false;
	run.ctx = support_open(0);
	run.dev = mlx5vfio_attach(run.ctx, NULL, NULL);
	ck_assert_ptr_nonnull(run.dev);
	mlx5vfio_set_handlers(run.dev, &handlers, NULL);
}

static void end(void)
{
	mlx5vfio_detach(run.dev);
	ck_assert_int_eq(ibv_close_device(run.ctx), 0);
	ck_assert_uint_eq(support_stats(0).violations, 0);
}

static void turn(int most_ms)
{
	int timeout = mlx5vfio_timeout_ms(run.dev);
	struct pollfd fd = { .fd = -1 };
	int n = mlx5vfio_pollfds(run.dev, &fd, 1);

	if (timeout < 0 || timeout > most_ms)
		timeout = most_ms;
	if (poll(&fd, (nfds_t)n, timeout) > 0)
		mlx5vfio_process(run.dev, fd.fd, fd.revents);
	else
		mlx5vfio_process(run.dev, -1, 0);
}

static void turn_for(int ms)
{
	int64_t until = support_now_ms() + ms;

	while (support_now_ms() < until)
		turn(10);
}

static bool all_consumed(void)
{
	struct mlx5vfio_sim_stats stats = support_stats(0);

	return !stats.requests_pending && stats.consumed >= stats.eqes;
}

static void turn_until_consumed(int most_ms)
{
	int64_t until = support_now_ms() + most_ms;

	do {
		turn(10);
		ck_assert_msg(support_now_ms() < until, "%llu of %llu entries consumed",
			      (unsigned long long)support_stats(0).consumed,
			      (unsigned long long)support_stats(0).eqes);
	} while (!all_consumed());
}

/* Each failing call takes one entry. By the tick alone this would be minutes. */
START_TEST(burst_of_real_size)
{
	begin();
	support_sim("page-request 0 2 150");
	turn(1000);
	turn_until_consumed(10000);
	turn_for(50);
	ck_assert_int_eq(run.errors, 1);
	ck_assert_int_eq(run.error, -EINVAL);
	support_sim("page-request 0 4");
	turn_until_consumed(5000);
	end();
}
END_TEST

/* The retries go on when there is no tick to do them, or a rare one. */
START_TEST(interval_changed_while_failing)
{
	static const int intervals[] = { 0, 3600000 };
	uint64_t given;

	begin();
	support_sim("fail 0 0x108 0x6 100000"); /* MANAGE_PAGES, busy */
	support_sim("page-request 0 4");
	turn_for(300);
	ck_assert_int_eq(run.errors, 1);
	ck_assert_int_eq(mlx5vfio_set_interval(run.dev, intervals[_i]), 0);
	turn_for(300);
	support_sim("fail 0 0x108 0x6 0");
	given = support_stats(0).pages_given;
	support_sim("page-request 0 4");
	turn_for(2000);
	ck_assert_uint_gt(support_stats(0).pages_given, given);
	end();
}
END_TEST

START_TEST(close_of_a_ctx_that_was_closed)
{
	begin();
	run.close_in_error = true;
	run.close_result = 0;
	ck_assert_int_eq(ibv_close_device(run.ctx), 0);
	turn_for(1100);
	ck_assert_int_eq(run.error, -EBADF);
	ck_assert_int_eq(run.close_result, -EBADF);
	mlx5vfio_detach(run.dev);
}
END_TEST

/* Takes what a closed ctx left free, so that the next one lies elsewhere. */
static void occupy(void *blocks[], int count)
{
	int i;

	for (i = 0; i < count; i++)
		blocks[i] = malloc(1000 + 64 * (size_t)i);
}

static void give_back(void *blocks[], int count)
{
	while (count)
		free(blocks[--count]);
}

/* The refusal tells the old device that its fd is another's, before it looks at what is unmapped. */
START_TEST(fd_taken_by_another_ctx)
{
	static void *blocks[2000];
	struct ibv_context *other;
	int fd;

	begin();
	fd = mlx5dv_vfio_get_events_fd(run.ctx);
	ck_assert_int_eq(ibv_close_device(run.ctx), 0); /* the mistake: no detach before */
	occupy(blocks, 2000);
	other = support_open(1);
	give_back(blocks, 2000);
	ck_assert_int_eq(mlx5dv_vfio_get_events_fd(other), fd);
	ck_assert_ptr_ne(other, run.ctx);
	ck_assert_ptr_null(mlx5vfio_attach(other, NULL, NULL));
	ck_assert_int_eq(errno, EBUSY);
	turn_for(1100);
	ck_assert_int_eq(run.error, -EBADF);
	mlx5vfio_detach(run.dev);
	ck_assert_int_eq(ibv_close_device(other), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("burst");
	TCase *tcase = tcase_create("burst");

	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, burst_of_real_size);
	tcase_add_loop_test(tcase, interval_changed_while_failing, 0, 2);
	tcase_add_test(tcase, close_of_a_ctx_that_was_closed);
	tcase_add_test(tcase, fd_taken_by_another_ctx);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

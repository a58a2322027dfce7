/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 2; tsan show seconds=5 */
/*
 * The kernel asks for a device back: the program hears of it within a tick, once, and when it gives the
 * device back, from inside the handler, the unbind that waits for it goes through.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "test_open.h"

#define TICK_MS 100

/* The machine is shared: a time counts as missed when it is missed this often in a row. */
#define TRIES 4

enum way { CLOSE, DETACH_AND_CLOSE, DETACH_ALONE, WAYS };

struct run {
	enum way way;
	int64_t told_at;
	int removals, closed, detached, error;
	struct ibv_context *left; /* still to be closed */
	pthread_t thread;
	int answer; /* of the unbind */
};

static void count_removal(struct mlx5vfio *dev, void *arg)
{
	struct run *run = arg;

	(void)dev;
	run->removals++;
	if (!run->told_at)
		run->told_at = support_now_ms();
}

static uint64_t ticks_of(struct mlx5vfio *dev)
{
	struct mlx5vfio_stats stats;

	mlx5vfio_get_stats(dev, &stats, sizeof(stats));
	return stats.ticks;
}

/* Milliseconds until it is told; then many more requests in many more ticks. */
static int64_t latency_of_a_request(void)
{
	static const struct mlx5vfio_handlers handlers = { .removal = count_removal };
	struct run run = { 0 };
	struct mlx5vfio *dev = test_attach(0, &handlers, &run);
	struct ibv_context *ctx = mlx5vfio_context(dev);
	int64_t asked;
	uint64_t ticks;

	ck_assert_uint_eq(mlx5vfio_features(dev), ALL_FEATURES);
	mlx5vfio_set_interval(dev, TICK_MS);
	support_sim("remove-request 0 every 7ms");
	asked = support_now_ms();
	while (!run.removals)
		test_turn(dev, 1000);
	for (ticks = ticks_of(dev); ticks_of(dev) < ticks + 10;)
		test_turn(dev, 1000);
	ck_assert_int_eq(run.removals, 1);
	mlx5vfio_detach(dev);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	return run.told_at - asked;
}

START_TEST(told_within_a_tick_and_once)
{
	int64_t latency = 0;
	int try;

	for (try = 0; try < TRIES; try++) {
		latency = latency_of_a_request();
		if (latency <= TICK_MS + 20)
			break;
	}
	printf("removal request told after %lld ms, tick %d ms\n", (long long)latency, TICK_MS);
	ck_assert_int_le(latency, TICK_MS + 20);
}
END_TEST

static void give_back(struct mlx5vfio *dev, void *arg)
{
	struct run *run = arg;
	struct ibv_context *ctx = mlx5vfio_context(dev);

	count_removal(dev, arg);
	if (run->way == CLOSE) {
		run->error = mlx5vfio_close(dev);
		return;
	}
	mlx5vfio_detach(dev);
	if (run->way == DETACH_ALONE)
		run->left = ctx;
	else
		run->error = ibv_close_device(ctx);
}

static void on_closed(int error, void *arg)
{
	struct run *run = arg;

	run->closed++;
	run->error = error;
}

static void on_detached(void *arg)
{
	struct run *run = arg;

	run->detached++;
}

static const struct mlx5vfio_handlers giving = {
	.removal = give_back,
	.closed = on_closed,
	.detached = on_detached,
};

static void *unbind(void *arg)
{
	struct run *run = arg;

	run->answer = mlx5vfio_sim_control("unbind 0 60s", NULL, 0);
	return NULL;
}

static void start_unbind(struct run *run)
{
	ck_assert_int_eq(pthread_create(&run->thread, NULL, unbind, run), 0);
}

static void run_on_uv(struct run *run)
{
	struct mlx5vfio *dev;
	uv_loop_t loop;

	ck_assert_int_eq(uv_loop_init(&loop), 0);
	dev = mlx5vfio_uv_attach(&loop, test_open(0));
	ck_assert_ptr_nonnull(dev);
	mlx5vfio_set_handlers(dev, &giving, run);
	start_unbind(run);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static void run_on_poll(struct run *run)
{
	struct mlx5vfio *dev = test_attach(0, &giving, run);

	start_unbind(run);
	while (!run->detached)
		test_turn(dev, 1000);
}

/* To detach is not enough: the kernel waits for the close. */
static void close_what_is_left(struct run *run)
{
	if (!run->left)
		return;
	ck_assert_int_eq(mlx5vfio_sim_control("unbind 0 50ms", NULL, 0), -ETIMEDOUT);
	ck_assert_int_eq(ibv_close_device(run->left), 0);
}

static void check_unbound(void)
{
	char why[128];

	ck_assert_ptr_null(mlx5vfio_open(support_pci_name(0), 0, why, sizeof(why)));
	ck_assert_int_eq(errno, ENXIO);
	ck_assert_msg(strstr(why, "not bound to a driver") != NULL, "%s", why);
	support_sim("bind 0");
	ck_assert_int_eq(ibv_close_device(test_open(0)), 0);
}

/* What libuv keeps for itself from the first loop on is there before anything is counted. */
static int fds_in_use(void)
{
	uv_loop_t loop;

	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	return support_open_fds();
}

START_TEST(unbind_goes_through)
{
	struct run run = { .way = (enum way)(_i % WAYS), .answer = -1 };
	int fds;

	ck_assert_int_eq(ibv_close_device(test_open(0)), 0);
	fds = fds_in_use();
	if (_i < WAYS)
		run_on_uv(&run);
	else
		run_on_poll(&run);
	close_what_is_left(&run);
	ck_assert_int_eq(pthread_join(run.thread, NULL), 0);
	ck_assert_int_eq(run.answer, 0);
	ck_assert_int_eq(run.error, 0);
	ck_assert_int_eq(run.removals, 1);
	ck_assert_int_eq(run.closed, run.way == CLOSE);
	ck_assert_int_eq(run.detached, 1);
	check_unbound();
	ck_assert(test_no_more_fds(fds));
}
END_TEST

/* The same question from outside the process, as an operator would put it. */
START_TEST(unbind_from_outside)
{
	struct run run = { .way = CLOSE };
	struct mlx5vfio *dev = test_attach(0, &giving, &run);
	const char *bin = getenv("TEST_BIN");
	char command[512];
	FILE *control;

	snprintf(command, sizeof(command), "%s/mlx5vfio-simctl unbind 0", bin ? bin : "build/bin");
	control = popen(command, "r");
	ck_assert_ptr_nonnull(control);
	while (!run.detached)
		test_turn(dev, 1000);
	ck_assert_int_eq(pclose(control), 0);
	ck_assert_int_eq(run.removals, 1);
	ck_assert_int_eq(run.closed, 1);
	check_unbound();
}
END_TEST

/* Each device has a request of its own. */
START_TEST(the_other_goes_on)
{
	static const struct mlx5vfio_handlers handlers = { .removal = count_removal };
	struct run run[2] = { 0 };
	struct mlx5vfio *dev[2];
	struct mlx5vfio_health health;
	uint64_t ticks;
	int i;

	for (i = 0; i < 2; i++) {
		dev[i] = test_attach((unsigned)i, &handlers, &run[i]);
		mlx5vfio_set_interval(dev[i], 10);
	}
	support_sim("remove-request 1 every 1ms");
	for (ticks = ticks_of(dev[1]); ticks_of(dev[1]) < ticks + 10;) {
		test_turn(dev[0], 10);
		test_turn(dev[1], 10);
	}
	ck_assert_int_eq(run[0].removals, 0);
	ck_assert_int_eq(run[1].removals, 1);
	for (i = 0; i < 2; i++) {
		struct ibv_context *ctx = mlx5vfio_context(dev[i]);

		ck_assert_int_eq(mlx5vfio_get_health(dev[i], &health), 0);
		ck_assert_int_eq(health.fault, MLX5VFIO_OK);
		mlx5vfio_detach(dev[i]);
		ck_assert_int_eq(ibv_close_device(ctx), 0);
	}
}
END_TEST

START_TEST(one_line_without_a_handler)
{
	const char *const argv[] = { "prog_open_quiet", NULL };
	char output[1024];
	int status = support_finish(support_start(argv), output, sizeof(output));
	char *end = strchr(output, '\n');

	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", (unsigned)status);
	ck_assert_ptr_nonnull(end);
	*end = '\0';
	printf("without a handler: %s\n", output);
	ck_assert_int_eq(strncmp(output, "mlx5vfio: ", 10), 0);
	ck_assert_str_eq(end + 1, "fault 0, warning 0, errors 0\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("removal");
	TCase *tcase = tcase_create("removal");

	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, told_within_a_tick_and_once);
	tcase_add_loop_test(tcase, unbind_goes_through, 0, 2 * WAYS);
	tcase_add_test(tcase, unbind_from_outside);
	tcase_add_test(tcase, the_other_goes_on);
	tcase_add_test(tcase, one_line_without_a_handler);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

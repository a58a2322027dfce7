/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_open_loaded LOAD COMMAND INTERVAL: device 0, opened by mlx5vfio_open(), in a libuv loop under a
 * load. Gives COMMAND to the simulator and prints the fault that .health told then, how many times, how
 * many milliseconds later, and how many warnings there were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "support/load.h"
#include "test_open.h"

struct run {
	const char *command;
	int interval_ms;
	int64_t injected;
	int64_t told;
	int faults, warnings;
	enum mlx5vfio_fault fault;
};

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct run *run = arg;

	(void)dev;
	if (health->fault == MLX5VFIO_OK) {
		run->warnings++;
		return;
	}
	run->faults++;
	run->told = support_now_ms();
	run->fault = health->fault;
}

static void inject(uv_timer_t *timer)
{
	struct run *run = timer->data;

	support_sim("%s", run->command);
	run->injected = support_now_ms();
}

/* Long enough after the first that a second .health would have come. */
static void finish(uv_timer_t *timer)
{
	struct run *run = timer->data;

	support_require(!run->injected || run->faults || support_now_ms() < run->injected + 20000,
			"no fault was told");
	if (!run->faults || support_now_ms() < run->told + 200 + run->interval_ms)
		return;
	printf("%s: %d: %lld: %d\n", mlx5vfio_fault_str(run->fault), run->faults,
	       (long long)(run->told - run->injected), run->warnings);
	fflush(stdout);
	_exit(0);
}

static void start_timer(uv_loop_t *loop, uv_timer_t *timer, struct run *run)
{
	uv_timer_init(loop, timer);
	timer->data = run;
}

int main(int argc, char **argv)
{
	static const struct mlx5vfio_handlers handlers = { .health = on_health };
	struct run run = { 0 };
	uv_timer_t injection, end;
	struct ibv_context *ctx;
	struct mlx5vfio *dev;
	uv_loop_t loop;

	if (argc != 4)
		return 1;
	run.command = argv[2];
	run.interval_ms = atoi(argv[3]);
	uv_loop_init(&loop);
	ctx = test_open(0);
	dev = mlx5vfio_uv_attach(&loop, ctx);
	if (!dev || mlx5vfio_features(dev) != ALL_FEATURES)
		return 1;
	mlx5vfio_set_handlers(dev, &handlers, &run);
	mlx5vfio_set_interval(dev, run.interval_ms);
	load_start(argv[1], 0, ctx);
	start_timer(&loop, &injection, &run);
	uv_timer_start(&injection, inject, 300 + (uint64_t)getpid() % 97, 0);
	start_timer(&loop, &end, &run);
	uv_timer_start(&end, finish, 20, 20);
	uv_run(&loop, UV_RUN_DEFAULT);
	return 2;
}

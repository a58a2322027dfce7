/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_guarded LOAD FAULT: the same as prog_bare with the device in a libuv loop. Prints the fault
 * that .health told, how many times, and how many milliseconds after the injection.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "support/load.h"
#include "support/support.h"

#define INTERVAL_MS 100

struct run {
	const char *fault_name;
	int64_t injected;
	int64_t told;
	int count;
	enum mlx5vfio_fault fault;
};

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct run *run = arg;

	(void)dev;
	if (health->fault == MLX5VFIO_OK)
		return;
	run->count++;
	run->told = support_now_ms();
	run->fault = health->fault;
}

static void inject(uv_timer_t *timer)
{
	struct run *run = timer->data;

	support_sim("%s 0", run->fault_name);
	run->injected = support_now_ms();
}

/* Long enough after the first that a second .health would have come. */
static void finish(uv_timer_t *timer)
{
	struct run *run = timer->data;

	if (!run->count)
		return;
	if (support_now_ms() < run->told + 3 * INTERVAL_MS)
		return;
	printf("%s: %d: %lld\n", mlx5vfio_fault_str(run->fault), run->count,
	       (long long)(run->told - run->injected));
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	static const struct mlx5vfio_handlers handlers = { .health = on_health };
	struct run run = { 0 };
	uv_timer_t injection, end;
	struct mlx5vfio *dev;
	struct ibv_context *ctx;
	uv_loop_t loop;

	if (argc != 3)
		return 1;
	run.fault_name = argv[2];
	uv_loop_init(&loop);
	ctx = support_open(0);
	dev = mlx5vfio_uv_attach(&loop, ctx);
	if (!dev || !mlx5vfio_guarded(dev))
		return 1;
	mlx5vfio_set_handlers(dev, &handlers, &run);
	mlx5vfio_set_interval(dev, INTERVAL_MS);
	load_start(argv[1], 0, ctx);
	uv_timer_init(&loop, &injection);
	injection.data = &run;
	uv_timer_start(&injection, inject, 300 + (uint64_t)getpid() % 97, 0);
	uv_timer_init(&loop, &end);
	end.data = &run;
	uv_timer_start(&end, finish, 20, 20);
	uv_run(&loop, UV_RUN_DEFAULT);
	return 2;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_bare LOAD FAULT DEV: a hand-written poll() loop around libmlx5 as programs have it, without any
 * code of this project but the simulator. Prints when it injected the fault, in milliseconds of
 * CLOCK_MONOTONIC, and goes on until libmlx5 aborts it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/load.h"
#include "support/support.h"

static void turn(struct ibv_context *ctx, int timeout_ms)
{
	struct pollfd fd = { .fd = mlx5dv_vfio_get_events_fd(ctx), .events = POLLIN };

	poll(&fd, 1, timeout_ms);
	mlx5dv_vfio_process_events(ctx);
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;
	int64_t start;
	unsigned dev;

	if (argc != 4)
		return 1;
	dev = (unsigned)atoi(argv[3]);
	ctx = support_open(dev);
	load_start(argv[1], dev, ctx);
	start = support_now_ms();
	while (support_now_ms() < start + 1200)
		turn(ctx, 100);
	support_sim("%s %u", argv[2], dev);
	start = support_now_ms();
	printf("%lld\n", (long long)start);
	fflush(stdout);
	while (support_now_ms() < start + 15000)
		turn(ctx, 1000);
	return 0;
}

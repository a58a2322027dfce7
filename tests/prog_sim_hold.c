/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_sim_hold hold: opens simulated device 0, says "open", and serves it in a plain poll() loop
 * until its standard input ends.
 * prog_sim_hold idle SECONDS: opens it, sleeps, and says how much of a core it cost, in thousandths.
 * prog_sim_hold leave: opens it and exits without closing it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/support.h"

enum {
	TICK = 300, /* ms */
};

static void hold(struct ibv_context *ctx)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = mlx5dv_vfio_get_events_fd(ctx), .events = POLLIN },
	};

	puts("open");
	fflush(stdout);
	while (!fds[0].revents) {
		poll(fds, 2, TICK);
		mlx5dv_vfio_process_events(ctx);
	}
}

/* Milliseconds of processor time, all threads. */
static long cpu_ms(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
	       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

static void idle(int seconds)
{
	long before;

	usleep(200000); /* the opening's after-work */
	before = cpu_ms();
	sleep((unsigned)seconds);
	printf("%ld\n", seconds ? (cpu_ms() - before) / seconds : 0);
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;

	if (argc < 2)
		return 1;
	ctx = support_open(0);
	if (!strcmp(argv[1], "leave"))
		return 0;
	if (!strcmp(argv[1], "hold"))
		hold(ctx);
	else
		idle(argc > 2 ? atoi(argv[2]) : 0);
	return ibv_close_device(ctx);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs of bench/ share. Each is about one loop and has the glue that people write for
 * it by hand; ours is one call beside it. The Makefile makes one program of one source, so the
 * shared part is included: common/bench.c, once per program.
 */
#ifndef BENCH_H
#define BENCH_H

#include <infiniband/mlx5dv.h>
#include <stdbool.h>

/* One way to serve a device. Every side has a loop of its own, so that no timer of another runs. */
struct side {
	const char *name;
	bool ours; /* attach gives a struct mlx5vfio */
	void *(*loop_new)(void);
	void *(*attach)(void *loop, struct ibv_context *ctx);
	void (*detach)(void *attached); /* NULL: cannot be done */
	void (*run)(void *loop);        /* until stop is called from inside */
	void (*stop)(void *loop);
	void (*turn)(void *loop); /* what is due, without waiting */
};

/*
 * The dedicated thread of public code bases: poll without a timeout, process, tell the loop. It
 * lives as long as the program.
 */
static void dedicated_thread(struct ibv_context *ctx, void (*tell)(void *arg), void *arg);

/* To be called on the loop's thread when the dedicated thread has told. */
static void handed_over(void);

/* sides ends with an empty one. The exit status of the program. */
static int bench_main(int argc, char *argv[], const struct side *sides);

#endif

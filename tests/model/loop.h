/* SPDX-License-Identifier: BSD-2-Clause */
/* A loop, as the model and the failure tests need it. Each loop_NAME.c defines `tested_loop`. */
#ifndef MODEL_LOOP_H
#define MODEL_LOOP_H

#include <stdbool.h>

struct ibv_context;
struct mlx5vfio;

struct loop {
	const char *name;
	bool can_unref;
	bool lets_go_later;  /* .detached comes on a later turn */
	bool epoll_is_exact; /* what it does not watch is not in its epoll set either */

	void *(*create)(void);
	/* False if something was left on it. */
	bool (*destroy)(void *loop);
	/* Destroys it with devices still on it. */
	void (*wreck)(void *loop);
	struct mlx5vfio *(*attach)(void *loop, struct ibv_context *ctx);
	/* dev is about to go, or gone: a loop that asks its devices must not ask it any more. */
	void (*drop)(void *loop, const struct mlx5vfio *dev);
	/* One turn that waits for max_ms at most. */
	void (*turn)(void *loop, int max_ms);
};

#endif

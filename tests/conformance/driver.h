/* SPDX-License-Identifier: BSD-2-Clause */
/* What a scenario needs of a loop. Each loop fills one in; scenarios know nothing else of it. */
#ifndef CONFORMANCE_DRIVER_H
#define CONFORMANCE_DRIVER_H

#include <stdbool.h>

struct ibv_context;
struct mlx5vfio;

struct loop_driver {
	const char *name;

	/* What the loop does not offer, and why. NULL: it does. */
	const char *no_unref;
	const char *no_fd_errors;
	const char *no_null_loop;

	void *(*create)(void);
	/* False if something was still on it, or it could not be ended for another reason. */
	bool (*destroy)(void *loop);
	/* Destroys it as programs wrongly do, with devices still on it. */
	void (*wreck)(void *loop);
	struct mlx5vfio *(*attach)(void *loop, struct ibv_context *ctx);
	/* What the program itself must do before mlx5vfio_detach(). NULL: nothing. */
	void (*drop)(void *loop, struct mlx5vfio *dev);
	/* One turn that waits for max_ms at most. False when nothing keeps the loop alive. */
	bool (*turn)(void *loop, int max_ms);
	/* Runs until nothing keeps the loop alive. */
	void (*run)(void *loop);

	/* The program's own watchers: fd readable, and every ms milliseconds. */
	void *(*watch)(void *loop, int fd, void (*fn)(void *arg), void *arg);
	void (*unwatch)(void *watcher);
	void *(*start_timer)(void *loop, int ms, void (*fn)(void *arg), void *arg);
	void (*stop_timer)(void *timer);
};

#endif

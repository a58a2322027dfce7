/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "libmlx5.h"

static struct {
	struct ibv_context *ctx;
	int ret, error, times;
} failure; /* only the thread of the scenarios sets it, and only while it runs the loop */

static void (*watcher)(const struct ibv_context *ctx, int error); /* likewise */
static atomic_uint calls;
static int (*next)(struct ibv_context *ctx);
static pthread_once_t found = PTHREAD_ONCE_INIT;

static void find_next(void)
{
	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_vfio_process_events");
}

static int call_or_fail(struct ibv_context *ctx)
{
	if (!failure.times || (failure.ctx && failure.ctx != ctx))
		return next(ctx);
	if (failure.times > 0)
		failure.times--;
	errno = failure.error;
	return failure.ret;
}

int mlx5dv_vfio_process_events(struct ibv_context *ctx)
{
	int ret;

	pthread_once(&found, find_next);
	if (!next)
		abort();
	atomic_fetch_add(&calls, 1);
	ret = call_or_fail(ctx);
	if (watcher)
		watcher(ctx, ret == -1 ? -(errno ? errno : EIO) : -ret);
	return ret;
}

void libmlx5_fail(struct ibv_context *ctx, int ret, int error, int times)
{
	failure.ctx = ctx;
	failure.ret = ret;
	failure.error = error;
	failure.times = times;
}

void libmlx5_heal(void)
{
	failure.times = 0;
}

unsigned libmlx5_calls(void)
{
	return atomic_load(&calls);
}

void libmlx5_watch(void (*seen)(const struct ibv_context *ctx, int error))
{
	watcher = seen;
}

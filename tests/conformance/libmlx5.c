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

static atomic_uint calls;
static int (*next)(struct ibv_context *ctx);
static pthread_once_t found = PTHREAD_ONCE_INIT;

static void find_next(void)
{
	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_vfio_process_events");
}

int mlx5dv_vfio_process_events(struct ibv_context *ctx)
{
	pthread_once(&found, find_next);
	if (!next)
		abort();
	atomic_fetch_add(&calls, 1);
	if (!failure.times || (failure.ctx && failure.ctx != ctx))
		return next(ctx);
	if (failure.times > 0)
		failure.times--;
	errno = failure.error;
	return failure.ret;
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

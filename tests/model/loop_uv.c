/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "loop.h"
#include "support/support.h"

struct uv_host {
	uv_loop_t uv;
	uv_timer_t limit;
};

static void *uv_create(void)
{
	struct uv_host *host = calloc(1, sizeof(*host));

	support_require(host && !uv_loop_init(&host->uv), "no loop");
	uv_timer_init(&host->uv, &host->limit);
	return host;
}

static bool uv_destroy(void *loop)
{
	struct uv_host *host = loop;
	bool clean;

	uv_close((uv_handle_t *)&host->limit, NULL);
	uv_run(&host->uv, UV_RUN_NOWAIT);
	clean = !uv_loop_close(&host->uv);
	if (clean)
		free(host);
	return clean;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void uv_wreck(void *loop)
{
	struct uv_host *host = loop;

	uv_walk(&host->uv, close_handle, NULL);
	uv_run(&host->uv, UV_RUN_DEFAULT);
	support_require(!uv_loop_close(&host->uv), "the wreck is busy");
	free(host);
}

static struct mlx5vfio *uv_attach(void *loop, struct ibv_context *ctx)
{
	struct uv_host *host = loop;

	return mlx5vfio_uv_attach(&host->uv, ctx);
}

static void uv_drop(void *loop, const struct mlx5vfio *dev)
{
	(void)loop;
	(void)dev;
}

static void on_limit(uv_timer_t *timer)
{
	(void)timer;
}

/* The limit repeats: libuv may fire it before it polls, and would then poll without one. */
static void uv_turn(void *loop, int max_ms)
{
	struct uv_host *host = loop;

	uv_update_time(&host->uv);
	uv_timer_start(&host->limit, on_limit, (uint64_t)max_ms, (uint64_t)max_ms);
	uv_run(&host->uv, max_ms ? UV_RUN_ONCE : UV_RUN_NOWAIT);
	uv_timer_stop(&host->limit);
}

static const struct loop tested_loop = {
	.name = "libuv",
	.can_unref = true,
	.lets_go_later = true,
	.epoll_is_exact = true,
	.create = uv_create,
	.destroy = uv_destroy,
	.wreck = uv_wreck,
	.attach = uv_attach,
	.drop = uv_drop,
	.turn = uv_turn,
};

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <ev.h>

#include <mlx5vfio/libev.h>

#include "loop.h"
#include "support/support.h"

struct libev_host {
	struct ev_loop *ev;
	ev_timer limit;
};

/* A timer that repeats is never stopped by libev itself, so that it is always we who do. */
#define NEVER_AGAIN 1e6

static void on_limit(struct ev_loop *ev, ev_timer *timer, int revents)
{
	(void)ev;
	(void)timer;
	(void)revents;
}

static void *libev_create(void)
{
	struct libev_host *host = calloc(1, sizeof(*host));

	support_require(host && (host->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV)),
			"no loop");
	ev_timer_init(&host->limit, on_limit, 0., NEVER_AGAIN);
	return host;
}

static void libev_wreck(void *loop)
{
	struct libev_host *host = loop;

	ev_loop_destroy(host->ev);
	free(host);
}

/* No reference is left, and none is missing: with one of our own there is exactly one. */
static bool libev_destroy(void *loop)
{
	struct libev_host *host = loop;
	bool clean = !ev_run(host->ev, EVRUN_NOWAIT);

	ev_ref(host->ev);
	clean = clean && ev_run(host->ev, EVRUN_NOWAIT) == 1;
	ev_unref(host->ev);
	libev_wreck(host);
	return clean;
}

static struct mlx5vfio *libev_attach(void *loop, struct ibv_context *ctx)
{
	struct libev_host *host = loop;

	return mlx5vfio_libev_attach(host->ev, ctx);
}

static void libev_drop(void *loop, const struct mlx5vfio *dev)
{
	(void)loop;
	(void)dev;
}

static void libev_turn(void *loop, int max_ms)
{
	struct libev_host *host = loop;

	ev_now_update(host->ev);
	ev_timer_set(&host->limit, max_ms / 1000., NEVER_AGAIN);
	ev_timer_start(host->ev, &host->limit);
	ev_run(host->ev, max_ms ? EVRUN_ONCE : EVRUN_NOWAIT);
	ev_timer_stop(host->ev, &host->limit);
}

static const struct loop tested_loop = {
	.name = "libev",
	.can_unref = true,
	.create = libev_create,
	.destroy = libev_destroy,
	.wreck = libev_wreck,
	.attach = libev_attach,
	.drop = libev_drop,
	.turn = libev_turn,
};

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <event2/event.h>

#include <mlx5vfio/libevent.h>

#include "loop.h"
#include "support/support.h"

struct libevent_host {
	struct event_base *base;
	struct event *limit;
};

static void on_limit(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	(void)arg;
}

static void *libevent_create(void)
{
	struct libevent_host *host = calloc(1, sizeof(*host));

	support_require(host && (host->base = event_base_new()), "no loop");
	host->limit = evtimer_new(host->base, on_limit, NULL);
	return host;
}

static void libevent_wreck(void *loop)
{
	struct libevent_host *host = loop;

	event_free(host->limit);
	event_base_free(host->base);
	free(host);
}

static bool libevent_destroy(void *loop)
{
	struct libevent_host *host = loop;
	bool clean = !event_base_get_num_events(host->base,
						EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE);

	libevent_wreck(host);
	return clean;
}

static struct mlx5vfio *libevent_attach(void *loop, struct ibv_context *ctx)
{
	struct libevent_host *host = loop;

	return mlx5vfio_libevent_attach(host->base, ctx);
}

static void libevent_drop(void *loop, const struct mlx5vfio *dev)
{
	(void)loop;
	(void)dev;
}

static void libevent_turn(void *loop, int max_ms)
{
	struct timeval limit = { max_ms / 1000, max_ms % 1000 * 1000 };
	struct libevent_host *host = loop;

	event_base_update_cache_time(host->base);
	evtimer_add(host->limit, &limit);
	event_base_loop(host->base, max_ms ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
	evtimer_del(host->limit);
}

static const struct loop tested_loop = {
	.name = "libevent",
	.epoll_is_exact = true,
	.create = libevent_create,
	.destroy = libevent_destroy,
	.wreck = libevent_wreck,
	.attach = libevent_attach,
	.drop = libevent_drop,
	.turn = libevent_turn,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; timeout=400 seconds=20 */
/* The conformance scenarios on a loop of one's own, through struct mlx5vfio_loop_ops. */
#include <errno.h>
#include <stdlib.h>

#include <mlx5vfio/core.h>

#include "conformance/suite.h"
#include "conformance/tiny_loop.h"
#include "support/support.h"

#define MAX_FDS 4

struct host {
	struct tiny_loop *loop;
	struct mlx5vfio *dev;
	struct tiny_source *fds[MAX_FDS];
	struct tiny_source *timer;
	bool unreferenced;
};

static void on_ready(struct tiny_source *source, int revents)
{
	const struct host *host = source->arg;

	mlx5vfio_process(host->dev, source->fd, revents);
}

static void on_due(struct tiny_source *source)
{
	const struct host *host = source->arg;

	mlx5vfio_process(host->dev, -1, 0);
}

static struct tiny_source *add_source(struct host *host)
{
	struct tiny_source *source = tiny_add(host->loop);

	if (!source)
		return NULL;
	source->arg = host;
	source->unreferenced = host->unreferenced;
	source->on_ready = on_ready;
	source->on_due = on_due;
	return source;
}

static struct tiny_source **source_of(struct host *host, int fd)
{
	struct tiny_source **spare = NULL;

	for (int i = 0; i < MAX_FDS; i++) {
		if (host->fds[i] && host->fds[i]->fd == fd)
			return &host->fds[i];
		if (!host->fds[i])
			spare = &host->fds[i];
	}
	return spare;
}

static int host_watch(void *loop, int fd, int events)
{
	struct tiny_source **source = source_of(loop, fd);

	if (!source)
		return -ENOSPC;
	if (!events) {
		if (*source)
			tiny_remove(*source);
		*source = NULL;
		return 0;
	}
	if (!*source)
		*source = add_source(loop);
	if (!*source)
		return -ENOMEM;
	(*source)->fd = fd;
	return 0;
}

static int host_timer(void *loop, int timeout_ms)
{
	struct host *host = loop;

	host->timer->due_ms = timeout_ms < 0 ? TINY_NEVER : support_now_ms() + timeout_ms;
	return 0;
}

static int host_keepalive(void *loop, bool on)
{
	struct host *host = loop;

	host->unreferenced = !on;
	host->timer->unreferenced = !on;
	for (int i = 0; i < MAX_FDS; i++)
		if (host->fds[i])
			host->fds[i]->unreferenced = !on;
	return 0;
}

static void host_release(void *loop)
{
	struct host *host = loop;
	struct mlx5vfio *dev = host->dev;

	for (int i = 0; i < MAX_FDS; i++)
		if (host->fds[i])
			tiny_remove(host->fds[i]);
	tiny_remove(host->timer);
	free(host);
	mlx5vfio_released(dev);
}

static const struct mlx5vfio_loop_ops ops = {
	.name = "ops",
	.watch = host_watch,
	.timer = host_timer,
	.keepalive = host_keepalive,
	.release = host_release,
	.discard = free,
};

static struct mlx5vfio *attach(void *loop, struct ibv_context *ctx)
{
	struct host *host = calloc(1, sizeof(*host));

	ck_assert_ptr_nonnull(host);
	host->loop = loop;
	host->timer = add_source(host);
	host->dev = mlx5vfio_attach(ctx, &ops, host);
	if (host->dev)
		return host->dev;
	/* as before the call: nothing watched, no timer */
	for (int i = 0; i < MAX_FDS; i++)
		ck_assert_ptr_null(host->fds[i]);
	ck_assert(host->timer->due_ms == TINY_NEVER);
	tiny_remove(host->timer);
	free(host);
	return NULL;
}

static const struct loop_driver own_loop = {
	.name = "ops",
	.no_null_loop = "what loop points to is the program's own affair",
	.create = tiny_driver_create,
	.destroy = tiny_driver_destroy,
	.wreck = tiny_driver_wreck,
	.attach = attach,
	.turn = tiny_driver_turn,
	.run = tiny_driver_run,
	.watch = tiny_driver_watch,
	.unwatch = tiny_driver_stop,
	.start_timer = tiny_driver_start_timer,
	.stop_timer = tiny_driver_stop,
};

int main(void)
{
	static const struct loop_driver *const drivers[] = { &own_loop };

	return suite_run(drivers, 1);
}

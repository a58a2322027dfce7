/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5vfio on libev: an io watcher for each fd and one timer. All decisions are the core's. */
#include <errno.h>
#include <stdlib.h>
#include <ev.h>

#include <mlx5vfio/libev.h>

struct watch {
	ev_io io; /* first: libev hands us this */
	bool weak;
	struct watch *next;
};

struct host {
	struct ev_loop *loop;
	struct mlx5vfio *dev;
	struct watch *watches;
	ev_timer timer;
	bool timer_weak;
	bool unreferenced;
};

/*
 * A watcher that does not keep the loop alive has its reference taken back while it is active. libev
 * stops some watchers by itself, so each remembers whether that was done.
 */
static void balance(const struct host *host, bool active, bool *weak)
{
	bool want = active && host->unreferenced;

	if (want && !*weak)
		ev_unref(host->loop);
	if (!want && *weak)
		ev_ref(host->loop);
	*weak = want;
}

static void on_io(struct ev_loop *loop, ev_io *io, int revents)
{
	struct host *host = io->data;

	(void)loop;
	if (revents & EV_ERROR)
		balance(host, ev_is_active(io), &((struct watch *)io)->weak);
	mlx5vfio_process(host->dev, io->fd, revents & EV_ERROR ? POLLERR : POLLIN);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct host *host = timer->data;

	(void)loop;
	(void)revents;
	balance(host, false, &host->timer_weak);
	mlx5vfio_process(host->dev, -1, 0);
}

static int add_watch(struct host *host, int fd)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	ev_io_init(&watch->io, on_io, fd, EV_READ);
	watch->io.data = host;
	watch->next = host->watches;
	host->watches = watch;
	ev_io_start(host->loop, &watch->io);
	balance(host, true, &watch->weak);
	return 0;
}

/* A watcher that was only stopped would take a reused fd number for the old fd when it is restarted. */
static void remove_watch(struct host *host, struct watch **link)
{
	struct watch *watch = *link;

	*link = watch->next;
	balance(host, false, &watch->weak);
	ev_io_stop(host->loop, &watch->io);
	free(watch);
}

static int host_watch(void *loop, int fd, int events)
{
	struct host *host = loop;
	struct watch **link = &host->watches;

	if (events)
		return add_watch(host, fd);
	while (*link && (*link)->io.fd != fd)
		link = &(*link)->next;
	if (*link)
		remove_watch(host, link);
	return 0;
}

/* libev counts from the loop's cached time, which a long callback leaves behind the clock. */
static int host_timer(void *loop, int timeout_ms)
{
	struct host *host = loop;

	ev_timer_stop(host->loop, &host->timer);
	if (timeout_ms >= 0) {
		ev_now_update(host->loop);
		ev_timer_set(&host->timer, timeout_ms / 1000., 0.);
		ev_timer_start(host->loop, &host->timer);
	}
	balance(host, timeout_ms >= 0, &host->timer_weak);
	return 0;
}

static int host_keepalive(void *loop, bool on)
{
	struct host *host = loop;
	struct watch *watch;

	host->unreferenced = !on;
	balance(host, ev_is_active(&host->timer), &host->timer_weak);
	for (watch = host->watches; watch; watch = watch->next)
		balance(host, ev_is_active(&watch->io), &watch->weak);
	return 0;
}

static void host_discard(void *loop)
{
	struct host *host = loop;
	struct watch *watch;

	while ((watch = host->watches)) {
		host->watches = watch->next;
		free(watch);
	}
	free(host);
}

static void host_release(void *loop)
{
	struct host *host = loop;
	struct mlx5vfio *dev = host->dev;

	while (host->watches)
		remove_watch(host, &host->watches);
	host_timer(host, -1);
	host_discard(host);
	if (dev)
		mlx5vfio_released(dev);
}

static const struct mlx5vfio_loop_ops libev_ops = {
	.name = "libev",
	.watch = host_watch,
	.timer = host_timer,
	.keepalive = host_keepalive,
	.release = host_release,
	.discard = host_discard,
};

struct mlx5vfio *mlx5vfio_libev_attach(struct ev_loop *loop, struct ibv_context *ctx)
{
	struct host *host = loop ? calloc(1, sizeof(*host)) : NULL;
	int err;

	if (!host) {
		errno = loop ? ENOMEM : EINVAL;
		return NULL;
	}
	host->loop = loop;
	ev_init(&host->timer, on_timer);
	host->timer.data = host;
	host->dev = mlx5vfio_attach(ctx, &libev_ops, host);
	if (host->dev)
		return host->dev;
	err = errno;
	host_release(host);
	errno = err;
	return NULL;
}

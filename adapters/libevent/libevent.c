/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5vfio on libevent: an event for each fd and one timer. All decisions are the core's. */
#include <errno.h>
#include <stdlib.h>
#include <event2/event.h>

#include <mlx5vfio/libevent.h>

struct watch {
	struct event *event;
	int fd;
	struct watch *next;
};

struct host {
	struct event_base *base;
	struct mlx5vfio *dev;
	struct watch *watches;
	struct event *timer;
};

static void on_fd(evutil_socket_t fd, short events, void *arg)
{
	const struct host *host = arg;

	mlx5vfio_process(host->dev, (int)fd, events & EV_READ ? POLLIN : POLLERR);
}

static void on_timer(evutil_socket_t fd, short events, void *arg)
{
	const struct host *host = arg;

	(void)fd;
	(void)events;
	mlx5vfio_process(host->dev, -1, 0);
}

/* The memory is ours, not libevent's: it can be freed also when the base is gone. */
static struct event *new_event(struct host *host, int fd, short events, event_callback_fn callback)
{
	struct event *event = calloc(1, event_get_struct_event_size());

	if (event && event_assign(event, host->base, fd, events, callback, host)) {
		free(event);
		return NULL;
	}
	return event;
}

static void free_event(struct event *event)
{
	if (event)
		event_debug_unassign(event);
	free(event);
}

/* libevent says only that it failed; errno is the system's where it was the system that refused. */
static int host_error(int ret)
{
	if (!ret)
		return 0;
	return errno ? -errno : -EIO;
}

/* Never kept for a later start: the fd may be another's by then. */
static void remove_watch(struct watch **link)
{
	struct watch *watch = *link;

	*link = watch->next;
	event_del(watch->event);
	free_event(watch->event);
	free(watch);
}

static int add_watch(struct host *host, int fd)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch)
		return -ENOMEM;
	watch->event = new_event(host, fd, EV_READ | EV_PERSIST, on_fd);
	if (!watch->event) {
		free(watch);
		return -ENOMEM;
	}
	watch->fd = fd;
	watch->next = host->watches;
	host->watches = watch;
	errno = 0;
	err = host_error(event_add(watch->event, NULL));
	if (err)
		remove_watch(&host->watches);
	return err;
}

static int host_watch(void *loop, int fd, int events)
{
	struct host *host = loop;
	struct watch **link = &host->watches;

	if (events)
		return add_watch(host, fd);
	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	if (*link)
		remove_watch(link);
	return 0;
}

/* Inside a callback libevent counts from the time it cached before it called out. */
static int host_timer(void *loop, int timeout_ms)
{
	struct host *host = loop;
	struct timeval timeout = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

	errno = 0;
	if (timeout_ms < 0)
		return host->timer ? host_error(evtimer_del(host->timer)) : 0;
	if (!host->timer)
		host->timer = new_event(host, -1, 0, on_timer);
	if (!host->timer)
		return -ENOMEM;
	event_base_update_cache_time(host->base);
	return host_error(evtimer_add(host->timer, &timeout));
}

static void host_discard(void *loop)
{
	struct host *host = loop;
	struct watch *watch;

	while ((watch = host->watches)) {
		host->watches = watch->next;
		free_event(watch->event);
		free(watch);
	}
	free_event(host->timer);
	free(host);
}

static void host_release(void *loop)
{
	struct host *host = loop;
	struct mlx5vfio *dev = host->dev;

	while (host->watches)
		remove_watch(&host->watches);
	if (host->timer)
		event_del(host->timer);
	host_discard(host);
	if (dev)
		mlx5vfio_released(dev);
}

static const struct mlx5vfio_loop_ops libevent_ops = {
	.name = "libevent",
	.watch = host_watch,
	.timer = host_timer,
	.release = host_release,
	.discard = host_discard,
};

struct mlx5vfio *mlx5vfio_libevent_attach(struct event_base *base, struct ibv_context *ctx)
{
	struct host *host = base ? calloc(1, sizeof(*host)) : NULL;
	int err;

	if (!host) {
		errno = base ? ENOMEM : EINVAL;
		return NULL;
	}
	host->base = base;
	host->dev = mlx5vfio_attach(ctx, &libevent_ops, host);
	if (host->dev)
		return host->dev;
	err = errno;
	host_release(host);
	errno = err;
	return NULL;
}

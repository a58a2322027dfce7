/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5vfio on libuv: a poll handle for each fd and one timer. All decisions are the core's. */
#include <errno.h>
#include <stdlib.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

struct watch {
	uv_poll_t poll; /* first: libuv hands us this */
	int fd;
	struct watch *next;
};

struct host {
	uv_loop_t *loop;
	struct mlx5vfio *dev;
	struct watch *watches;
	uv_timer_t timer; /* its data is set once libuv knows it */
	bool unreferenced;
	unsigned handles; /* libuv holds our memory until all are closed */
};

static void set_reference(const struct host *host, uv_handle_t *handle)
{
	(host->unreferenced ? uv_unref : uv_ref)(handle);
}

static void adopt(struct host *host, uv_handle_t *handle)
{
	handle->data = host;
	host->handles++;
	set_reference(host, handle);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	int revents = !status && (events & UV_READABLE) ? POLLIN : POLLERR;

	mlx5vfio_process(((struct host *)poll->data)->dev, ((struct watch *)poll)->fd, revents);
}

static void on_timer(uv_timer_t *timer)
{
	mlx5vfio_process(((const struct host *)timer->data)->dev, -1, 0);
}

static void on_closed(uv_handle_t *handle)
{
	struct host *host = handle->data;
	struct mlx5vfio *dev = host->dev;

	if (uv_handle_get_type(handle) == UV_POLL)
		free(handle);
	if (--host->handles)
		return;
	free(host);
	if (dev)
		mlx5vfio_released(dev);
}

/* A handle that was only stopped would touch its fd again when it is closed, whoever has it then. */
static void remove_watch(struct watch **link)
{
	struct watch *watch = *link;

	*link = watch->next;
	uv_close((uv_handle_t *)&watch->poll, on_closed);
}

static int add_watch(struct host *host, int fd)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int err = watch ? uv_poll_init(host->loop, &watch->poll, fd) : -ENOMEM;

	if (err) {
		free(watch);
		return err;
	}
	watch->fd = fd;
	watch->next = host->watches;
	host->watches = watch;
	adopt(host, (uv_handle_t *)&watch->poll);
	err = uv_poll_start(&watch->poll, UV_READABLE, on_poll);
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

/* libuv counts from the loop's cached time, which a long callback leaves behind the clock. */
static int host_timer(void *loop, int timeout_ms)
{
	struct host *host = loop;
	uint64_t behind = uv_hrtime() / 1000000 - uv_now(host->loop);

	if (!host->timer.data) {
		uv_timer_init(host->loop, &host->timer);
		adopt(host, (uv_handle_t *)&host->timer);
	}
	if (timeout_ms < 0)
		return uv_timer_stop(&host->timer);
	return uv_timer_start(&host->timer, on_timer, behind + (uint64_t)timeout_ms, 0);
}

static int host_keepalive(void *loop, bool on)
{
	struct host *host = loop;
	struct watch *watch;

	host->unreferenced = !on;
	set_reference(host, (uv_handle_t *)&host->timer);
	for (watch = host->watches; watch; watch = watch->next)
		set_reference(host, (uv_handle_t *)&watch->poll);
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

	while (host->watches)
		remove_watch(&host->watches);
	if (host->timer.data)
		uv_close((uv_handle_t *)&host->timer, on_closed);
	if (!host->handles)
		free(host);
}

static const struct mlx5vfio_loop_ops uv_ops = {
	.name = "libuv",
	.watch = host_watch,
	.timer = host_timer,
	.keepalive = host_keepalive,
	.release = host_release,
	.discard = host_discard,
};

struct mlx5vfio *mlx5vfio_uv_attach(uv_loop_t *loop, struct ibv_context *ctx)
{
	struct host *host = loop ? calloc(1, sizeof(*host)) : NULL;
	int err;

	if (!host) {
		errno = loop ? ENOMEM : EINVAL;
		return NULL;
	}
	host->loop = loop;
	host->dev = mlx5vfio_attach(ctx, &uv_ops, host);
	if (host->dev)
		return host->dev;
	err = errno;
	host_release(host);
	errno = err;
	return NULL;
}

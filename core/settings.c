/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program sets on an attached device, and what it asks of it. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "device.h"
#include "eq.h"
#include "thread.h"

#define INTERVAL_MIN_MS 10
#define INTERVAL_MAX_MS 3600000

void mlx5vfio_set_handlers(struct mlx5vfio *dev, const struct mlx5vfio_handlers *handlers,
			   void *arg)
{
	static const struct mlx5vfio_handlers none;

	thread_check(dev);
	dev->handlers = handlers ? *handlers : none;
	dev->arg = arg;
}

int mlx5vfio_set_interval(struct mlx5vfio *dev, int ms)
{
	if (!dev || (ms && (ms < INTERVAL_MIN_MS || ms > INTERVAL_MAX_MS)))
		return -EINVAL;
	device_enter(dev);
	dev->interval_ms = ms;
	dev->tick_at = schedule_next_tick(dev, clock_ms());
	if (dev->failing && dev->retry_at == NEVER)
		device_retry_later(dev);
	device_leave(dev);
	return 0;
}

static int keepalive(struct mlx5vfio *dev, bool on)
{
	if (!dev)
		return -EINVAL;
	if (!dev->ops || !dev->ops->keepalive)
		return -ENOTSUP;
	return dev->ops->keepalive(dev->loop, on);
}

int mlx5vfio_ref(struct mlx5vfio *dev)
{
	return keepalive(dev, true);
}

int mlx5vfio_unref(struct mlx5vfio *dev)
{
	return keepalive(dev, false);
}

void mlx5vfio_get_stats(const struct mlx5vfio *dev, struct mlx5vfio_stats *out, size_t size)
{
	struct mlx5vfio_stats stats = dev->stats;
	size_t known = size < sizeof(stats) ? size : sizeof(stats);

	stats.samples = dev->guard.samples;
	memcpy(out, &stats, known);
	memset((char *)out + known, 0, size - known);
}

struct ibv_context *mlx5vfio_context(const struct mlx5vfio *dev)
{
	return dev->ctx;
}

int mlx5vfio_pollfds(const struct mlx5vfio *dev, struct pollfd *fds, int n)
{
	int fd = dev->closer ? closer_fd(dev->closer) : dev->fd;

	if (!dev->watching && !dev->closer)
		return eq_pollfds(dev, fds, n);
	if (n <= 0)
		return 1 + eq_pollfds(dev, NULL, 0);
	fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 1 + eq_pollfds(dev, fds + 1, n - 1);
}

int mlx5vfio_timeout_ms(const struct mlx5vfio *dev)
{
	int64_t at = schedule_deadline(dev);
	int64_t left;

	if (at == NEVER)
		return -1;
	left = at - clock_ms();
	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

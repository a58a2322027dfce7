/* SPDX-License-Identifier: BSD-2-Clause */
/* Closing a device without waiting for it: the loop hears when the helper thread is done. */
#include <errno.h>

#include "device.h"
#include "eq.h"
#include "thread.h"

/* While a device closes its timer is free. */
#define ASK_AGAIN_MS 100

static int watch_closer(struct mlx5vfio *dev, int events)
{
	return dev->ops ? dev->ops->watch(dev->loop, closer_fd(dev->closer), events) : 0;
}

/* Before the closer goes, and its fd with it. */
void close_unwatch(struct mlx5vfio *dev)
{
	watch_closer(dev, 0);
}

/* Everything that can fail comes before the first thing that cannot be taken back. */
int mlx5vfio_close(struct mlx5vfio *dev)
{
	struct verbs_eq *queues;
	int err;

	if (!dev)
		return -EINVAL;
	thread_check(dev);
	if (dev->state > DEVICE_ENDED)
		return -EALREADY;
	if (dev->state == DEVICE_ENDED && !dev->fault)
		return -EBADF;
	err = closer_new(dev->ctx, !health_alive(dev), &dev->closer);
	if (err)
		return err;
	err = watch_closer(dev, POLLIN);
	if (err) {
		close_forget(dev);
		return err;
	}
	queues = eq_hand_over(dev);
	dev->settled = false;
	dev->state = DEVICE_CLOSING;
	registry_remove(dev);
	schedule_stop(dev);
	closer_go(dev->closer, queues);
	return 0;
}

void close_forget(struct mlx5vfio *dev)
{
	closer_drop(dev->closer);
	dev->closer = NULL;
}

/* A loop that cannot watch the closer's fd is not to wait for its end in vain. */
static void ask_again_later(struct mlx5vfio *dev)
{
	if (dev->ops)
		dev->ops->timer(dev->loop, ASK_AGAIN_MS);
}

int close_process(struct mlx5vfio *dev, int fd, int revents)
{
	int error;

	if (fd != -1 && fd != closer_fd(dev->closer))
		return 0;
	if (!closer_done(dev->closer, &error)) {
		if (fd == -1 || !(revents & POLLIN))
			ask_again_later(dev);
		return 0;
	}
	device_enter(dev);
	if (dev->handlers.closed)
		dev->handlers.closed(error, dev->arg);
	if (dev->state != DEVICE_DETACHED)
		device_release(dev);
	device_leave(dev);
	return 0;
}

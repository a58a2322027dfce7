/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of an attached device: attach, detach from anywhere, and the moment its memory goes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "device.h"
#include "eq.h"
#include "opened.h"
#include "thread.h"
#include "verbs.h"

static bool ops_complete(const struct mlx5vfio_loop_ops *ops)
{
	return !ops || (ops->watch && ops->timer && ops->release);
}

static struct mlx5vfio *device_new(struct ibv_context *ctx, int fd,
				   const struct mlx5vfio_loop_ops *ops, void *loop)
{
	struct mlx5vfio *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->ctx = ctx;
	dev->fd = fd;
	dev->ops = ops;
	dev->loop = loop;
	dev->interval_ms = MLX5VFIO_DEFAULT_INTERVAL;
	dev->tick_at = schedule_next_tick(dev, clock_ms());
	dev->retry_at = NEVER;
	dev->held_until = NEVER;
	dev->timer_at = NEVER;
	dev->notices = (struct vfio_notices){ -1, -1 };
	return dev;
}

/* All that can be wrong with a ctx is found before the loop is touched: 0 or a negative errno. */
static int check_ctx(struct ibv_context *ctx, int *fd, struct verbs_uar *uar)
{
	int err;

	if (!ctx)
		return -EINVAL;
	err = verbs_check(ctx, uar);
	if (err)
		return err;
	*fd = verbs_events_fd(ctx);
	return fcntl(*fd, F_GETFD) < 0 ? -EBADF : 0;
}

/* A device that is dead already attaches; the loop's first turn tells. */
static int start(struct mlx5vfio *dev, const struct verbs_uar *uar)
{
	bool fresh = opened_take(dev->ctx, dev->fd, &dev->notices);
	int err;

	guard_init(&dev->guard, registers_find(uar->page, uar->number), fresh);
	health_ok(dev);
	err = schedule_start(dev);
	if (err && fresh)
		opened_add(dev->ctx, dev->fd, dev->notices);
	return err;
}

struct mlx5vfio *mlx5vfio_attach(struct ibv_context *ctx, const struct mlx5vfio_loop_ops *ops,
				 void *loop)
{
	struct verbs_uar uar;
	struct mlx5vfio *dev;
	int fd, err;

	err = ops_complete(ops) ? check_ctx(ctx, &fd, &uar) : -EINVAL;
	if (err)
		goto fail;
	err = -ENOMEM;
	dev = device_new(ctx, fd, ops, loop);
	if (!dev)
		goto fail;
	err = registry_add(dev);
	if (err)
		goto fail_free;
	err = start(dev, &uar);
	if (err)
		goto fail_registered;
	return dev;

fail_registered:
	registry_remove(dev);
fail_free:
	free(dev);
fail:
	errno = -err;
	return NULL;
}

/* .detached may free what arg points to, so dev is gone before it runs. */
static void device_free(struct mlx5vfio *dev)
{
	void (*detached)(void *arg) = dev->handlers.detached;
	void *arg = dev->arg;

	vfio_notices_close(&dev->notices);
	free(dev);
	if (detached)
		detached(arg);
}

void device_enter(struct mlx5vfio *dev)
{
	thread_check(dev);
	dev->settled = false;
	dev->depth++;
}

/* The outermost call tells the loop what changed, or frees what was detached inside it. */
void device_leave(struct mlx5vfio *dev)
{
	if (dev->depth == 1 && dev->state <= DEVICE_ENDED)
		schedule_update(dev);
	dev->depth--;
	if (!dev->depth && dev->released)
		device_free(dev);
}

void mlx5vfio_released(struct mlx5vfio *dev)
{
	device_enter(dev);
	dev->released = true;
	device_leave(dev);
}

/* No handler but .detached from here on. */
static void begin_detach(struct mlx5vfio *dev)
{
	if (dev->state != DEVICE_CLOSING)
		registry_remove(dev);
	dev->closer = NULL;
	dev->settled = false;
	dev->state = DEVICE_DETACHED;
}

/*
 * The closer goes last: a loop may touch an fd once more when it lets go of it (libuv does), and with
 * the closer its fd is closed, by another thread perhaps.
 */
void device_release(struct mlx5vfio *dev)
{
	struct closer *closer = dev->closer;

	eq_close_all(dev);
	if (closer)
		close_unwatch(dev);
	begin_detach(dev);
	if (dev->ops)
		dev->ops->release(dev->loop);
	else
		mlx5vfio_released(dev);
	if (closer)
		closer_drop(closer);
}

void mlx5vfio_detach(struct mlx5vfio *dev)
{
	if (!dev || dev->state == DEVICE_DETACHED)
		return;
	thread_check(dev);
	device_release(dev);
}

void mlx5vfio_forget(struct mlx5vfio *dev)
{
	struct closer *closer;

	if (!dev || dev->state == DEVICE_DETACHED)
		return;
	closer = dev->closer;
	eq_forget_all(dev);
	begin_detach(dev);
	if (dev->ops && dev->ops->discard)
		dev->ops->discard(dev->loop);
	mlx5vfio_released(dev);
	if (closer)
		closer_drop(closer);
}

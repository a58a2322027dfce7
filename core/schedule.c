/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a device wants of its loop: whether its fd is watched and when its timer fires. The loop is
 * told only what changed, so that an event costs it nothing.
 */
#include <errno.h>
#include <limits.h>
#include <sys/eventfd.h>

#include "device.h"
#include "eq.h"

/* How often a device is looked at that a PCI error was signalled for. */
#define SUSPECT_INTERVAL_MS 50

/* Without a watch and without a tick, or with a rare one, the device would be forgotten. */
static int interval(const struct mlx5vfio *dev)
{
	int ms = dev->interval_ms;

	if (dev->watch_broken && (!ms || ms > MLX5VFIO_DEFAULT_INTERVAL))
		ms = MLX5VFIO_DEFAULT_INTERVAL;
	if (notices_suspect(dev) && (!ms || ms > SUSPECT_INTERVAL_MS))
		ms = SUSPECT_INTERVAL_MS;
	return ms;
}

/* Multiples of the period on a common clock: all devices of a process wake it together. */
int64_t schedule_next_tick(const struct mlx5vfio *dev, int64_t now)
{
	int ms = interval(dev);

	return ms ? (now / ms + 1) * ms : NEVER;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* 0, long past, for a fault that waits to be told. */
int64_t schedule_deadline(const struct mlx5vfio *dev)
{
	if (dev->state == DEVICE_ENDED && dev->fault && !dev->fault_told)
		return 0;
	if (dev->state != DEVICE_LIVE)
		return NEVER;
	return earlier(dev->tick_at, dev->held_until == NEVER ? dev->retry_at : dev->held_until);
}

/*
 * While calls fail or are put off the fd may stay readable; watching it would spin. The timer
 * finds what arrives meanwhile.
 */
static bool wants_watch(const struct mlx5vfio *dev)
{
	return dev->state == DEVICE_LIVE && !dev->failing && !dev->watch_broken &&
	       dev->held_until == NEVER;
}

static int change_watch(struct mlx5vfio *dev, bool want)
{
	int err = 0;

	if (dev->ops)
		err = dev->ops->watch(dev->loop, dev->fd, want ? POLLIN : 0);
	if (!err || !want)
		dev->watching = want;
	return err;
}

static int change_timer(struct mlx5vfio *dev, int64_t at)
{
	int timeout = -1;
	int err = 0;

	if (at != NEVER) {
		int64_t left = at - clock_ms();

		timeout = left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
	}
	if (dev->ops)
		err = dev->ops->timer(dev->loop, timeout);
	dev->timer_at = err ? NEVER : at;
	return err;
}

static int tell_watch(struct mlx5vfio *dev)
{
	bool want = wants_watch(dev);

	return want == dev->watching ? 0 : change_watch(dev, want);
}

static int tell_timer(struct mlx5vfio *dev)
{
	int64_t at = schedule_deadline(dev);

	return at == dev->timer_at ? 0 : change_timer(dev, at);
}

/* The first time it must work altogether or leave nothing behind. */
int schedule_start(struct mlx5vfio *dev)
{
	int err;

	err = tell_watch(dev);
	if (err)
		return err;
	err = tell_timer(dev);
	if (err && dev->ops)
		dev->ops->watch(dev->loop, dev->fd, 0);
	return err;
}

/* At once, whatever is on the stack: the ctx is about to be closed. */
void schedule_stop(struct mlx5vfio *dev)
{
	tell_watch(dev);
	tell_timer(dev);
}

/*
 * A timer that the loop refuses is asked for again at the next event, for which the fd is watched then,
 * whatever else was wanted. A quiet device has none: one is made for it, once.
 */
static void on_timer_refused(struct mlx5vfio *dev, int err)
{
	if (dev->state != DEVICE_LIVE)
		return;
	dev->failing = 0;
	dev->retry_at = NEVER;
	dev->held_until = NEVER;
	tell_watch(dev);
	if (!dev->woken)
		dev->woken = !eventfd_write(dev->fd, 1);
	device_report(dev, err);
}

static void tell_changes(struct mlx5vfio *dev)
{
	int err = tell_watch(dev);

	if (dev->state != DEVICE_LIVE)
		eq_unwatch_all(dev);
	if (err) {
		device_retry_later(dev);
		device_failed(dev, err);
	}
	if (dev->state > DEVICE_ENDED)
		return;
	err = tell_timer(dev);
	if (err)
		on_timer_refused(dev, err);
	else
		dev->woken = false;
}

static bool is_as_told(const struct mlx5vfio *dev)
{
	return dev->state == DEVICE_LIVE && wants_watch(dev) == dev->watching &&
	       schedule_deadline(dev) == dev->timer_at && !dev->woken;
}

/*
 * What a loop refuses later on is reported like a failed call and asked for again: a watch by the
 * retries, a timer by the next event.
 */
void schedule_update(struct mlx5vfio *dev)
{
	if (!is_as_told(dev))
		tell_changes(dev);
	else
		dev->settled = dev->watching && !notices_suspect(dev) && !dev->reported;
}

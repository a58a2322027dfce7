/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens when the loop fires: events, ticks, failures and their retries. */
#include <errno.h>
#include <fcntl.h>

#include "device.h"
#include "eq.h"
#include "thread.h"
#include "verbs.h"

/* A mid-batch failure leaves entries behind that nothing but another call of ours gets to. */
static const int retry_after_ms[] = { 1, 10, 100 };
#define RETRY_STEPS (sizeof(retry_after_ms) / sizeof(retry_after_ms[0]))

/* So many retries in a row may be quick ones, because there are entries; then a slow one follows. */
#define RETRY_HURRY 64

/* Signals are no failure; more than a few in a row are treated as one rather than looped on. */
#define EINTR_TRIES 4

/* Once per change: a handler that hears the same error at every retry learns nothing. */
void device_report(struct mlx5vfio *dev, int error)
{
	if (dev->reported == error)
		return;
	dev->reported = error;
	dev->stats.reports++;
	if (dev->handlers.error)
		dev->handlers.error(dev, error, dev->arg);
}

/* After the short retries the tick goes on trying, if there is one that does so often enough. */
void device_retry_later(struct mlx5vfio *dev)
{
	if (dev->retry_step < RETRY_STEPS) {
		dev->retry_at = clock_ms() + retry_after_ms[dev->retry_step++];
		return;
	}
	dev->hurry = RETRY_HURRY;
	if (dev->interval_ms && dev->interval_ms <= MLX5VFIO_DEFAULT_INTERVAL)
		dev->retry_at = NEVER;
	else
		dev->retry_at = clock_ms() + MLX5VFIO_DEFAULT_INTERVAL;
}

void device_failed(struct mlx5vfio *dev, int error)
{
	dev->failing = error;
	device_report(dev, error);
}

static void device_succeeded(struct mlx5vfio *dev)
{
	dev->failing = 0;
	dev->retry_step = 0;
	dev->hurry = RETRY_HURRY;
	dev->retry_at = NEVER;
	dev->reported = 0;
}

/* False when libmlx5 must not be called now, or never again. */
static bool guard_allows(struct mlx5vfio *dev, bool looked)
{
	enum mlx5vfio_fault fault = MLX5VFIO_OK;
	enum guard_verdict verdict;
	int wait_ms = 0;

	dev->held_until = NEVER;
	if (!looked && notices_suspect(dev)) {
		looked = true;
		if (!health_ok(dev))
			return false;
	}
	verdict = guard_before_call(&dev->guard, looked, &wait_ms, &fault);
	if (verdict == GUARD_WAIT) {
		dev->held_until = clock_ms() + wait_ms;
		dev->stats.deferred++;
	} else if (verdict == GUARD_FAULT) {
		health_fault(dev, fault);
	}
	return verdict == GUARD_CALL;
}

/* The guard has allowed it. */
static int call_libmlx5(struct mlx5vfio *dev)
{
	int err;

	dev->stats.calls++;
	err = verbs_process_events(dev->ctx);
	guard_after_call(&dev->guard);
	return err;
}

static void plan_retry(struct mlx5vfio *dev)
{
	if (dev->state == DEVICE_LIVE && dev->failing)
		device_retry_later(dev);
}

static void take_result(struct mlx5vfio *dev, int err)
{
	int tries = 0;

	while (err == -EINTR && ++tries < EINTR_TRIES) {
		if (!guard_allows(dev, false))
			return;
		err = call_libmlx5(dev);
	}
	if (!err) {
		device_succeeded(dev);
		return;
	}
	dev->stats.errors++;
	device_failed(dev, err);
	plan_retry(dev);
}

bool device_fd_is_readable(int fd)
{
	struct pollfd now = { .fd = fd, .events = POLLIN };

	return poll(&now, 1, 0) == 1 && (now.revents & POLLIN);
}

/* libmlx5 arms the queue also when it fails: what it left behind has raised an interrupt since. */
static bool left_something(const struct mlx5vfio *dev)
{
	return device_fd_is_readable(dev->fd);
}

/* Each failure in a burst leaves the rest of it for another call: then there is no time to lose. */
static void process_events(struct mlx5vfio *dev, bool looked)
{
	if (dev->failing && dev->hurry && left_something(dev)) {
		dev->hurry--;
		dev->retry_step = 0;
	}
	dev->retry_at = NEVER;
	if (!guard_allows(dev, looked)) {
		plan_retry(dev);
		return;
	}
	dev->stats.retries += dev->failing != 0;
	take_result(dev, call_libmlx5(dev));
}

/*
 * A closed fd means that the ctx was closed under us: neither it nor its registers are there any
 * more.
 */
bool device_fd_is_open(const struct mlx5vfio *dev)
{
	return !atomic_load(&dev->fd_taken) && fcntl(dev->fd, F_GETFD) >= 0;
}

void device_end_without_fd(struct mlx5vfio *dev)
{
	dev->state = DEVICE_ENDED;
	device_report(dev, -EBADF);
}

static void on_watch_error(struct mlx5vfio *dev)
{
	if (!device_fd_is_open(dev)) {
		device_end_without_fd(dev);
		return;
	}
	dev->watch_broken = true;
	dev->tick_at = schedule_next_tick(dev, clock_ms());
	device_report(dev, -EIO);
}

static void on_readable(struct mlx5vfio *dev)
{
	dev->stats.wakeups++;
	if (atomic_load(&dev->fd_taken))
		device_end_without_fd(dev);
	else
		process_events(dev, false);
}

/* The tick is also the safety net for an interrupt that got lost: it processes like an event. */
static void on_tick(struct mlx5vfio *dev, int64_t now)
{
	dev->stats.ticks++;
	notices_read(dev);
	if (dev->state != DEVICE_LIVE)
		return;
	dev->tick_at = schedule_next_tick(dev, now);
	if (health_ok(dev) && (dev->held_until == NEVER || now >= dev->held_until))
		process_events(dev, true);
	eq_tick(dev);
}

static void on_timer(struct mlx5vfio *dev)
{
	int64_t now = clock_ms();

	dev->timer_at = NEVER;
	if (now < schedule_deadline(dev))
		return;
	if (!device_fd_is_open(dev))
		device_end_without_fd(dev);
	else if (now >= dev->tick_at)
		on_tick(dev, now);
	else
		process_events(dev, false);
}

static void on_event(struct mlx5vfio *dev, int fd, int revents)
{
	if (fd == -1)
		on_timer(dev);
	else if (dev->watching && (revents & POLLIN))
		on_readable(dev);
	else if (dev->watching && revents)
		on_watch_error(dev);
}

/* Where nobody has looked there is no news, but for the tick, which notices also end with. */
static void leave_with_news(struct mlx5vfio *dev, int fd, uint64_t samples_before)
{
	bool looked = dev->guard.samples != samples_before;

	if (dev->state <= DEVICE_ENDED && (looked || fd == -1))
		health_tell(dev);
	device_leave(dev);
}

static int process_any(struct mlx5vfio *dev, int fd, int revents)
{
	uint64_t samples = dev->guard.samples;
	bool known = true;

	if (dev->state == DEVICE_CLOSING)
		return close_process(dev, fd, revents);
	device_enter(dev);
	if (fd != -1 && fd != dev->fd)
		known = eq_process(dev, fd, revents);
	else if (dev->state == DEVICE_LIVE)
		on_event(dev, fd, revents);
	else if (fd == -1)
		dev->timer_at = NEVER;
	leave_with_news(dev, fd, samples);
	return known ? 0 : -EINVAL;
}

/*
 * Nearly every event finds a healthy device, the loop up to date, and no check near. Then there is
 * nothing to look at and nobody to tell, unless libmlx5 fails.
 */
static int process_routine(struct mlx5vfio *dev)
{
	uint64_t samples;
	int err;

	if (!guard_is_far(&dev->guard))
		return process_any(dev, dev->fd, POLLIN);
	dev->stats.wakeups++;
	err = call_libmlx5(dev);
	if (!err)
		return 0;
	samples = dev->guard.samples;
	device_enter(dev);
	take_result(dev, err);
	leave_with_news(dev, dev->fd, samples);
	return 0;
}

int mlx5vfio_process(struct mlx5vfio *dev, int fd, int revents)
{
	if (!dev)
		return -EINVAL;
	thread_is_loop(dev);
	if (dev->settled && fd == dev->fd && revents == POLLIN && !atomic_load(&dev->fd_taken))
		return process_routine(dev);
	return process_any(dev, fd, revents);
}

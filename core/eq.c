/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event queue in its device's loop. Its fd stays readable until the queue was found empty, so
 * that what a budget leaves over comes on the loop's next turn without any help.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "device.h"
#include "eq.h"
#include "ring.h"
#include "thread.h"
#include "verbs.h"

#define DEFAULT_LOG_SIZE 8
#define MIN_LOG_SIZE     4
#define MAX_LOG_SIZE     16
#define DEFAULT_BUDGET   64

/* Types of the queue that libmlx5 opened: command completion and page request. */
#define LIBMLX5_EVENTS (UINT64_C(1) << 0x0a | UINT64_C(1) << 0x0b)

/* They come from the CQs that were created on the queue; the device is not asked for them. */
#define COMPLETIONS (UINT64_C(1) << MLX5VFIO_EVENT_COMPLETION)

/* Syndromes of firmware that had no room in an event queue. */
#define SYND_EQ_OVERRUN 0x0c
#define SYND_EQ_ERROR   0x0d

/* For so long a queue that was full may turn out to have dropped events. */
#define SUSPECT_MS 1000

struct mlx5vfio_eq {
	struct mlx5vfio *dev;
	struct verbs_eq *verbs; /* NULL when closed */
	struct ring ring;
	mlx5vfio_event_fn *on_event;
	void *arg;
	unsigned budget;
	bool watching;
	bool overrun;    /* nothing comes through it any more */
	int64_t full_at; /* when it was last seen to have been full, NEVER once that is looked into */
	uint64_t tick;   /* the last one that saw it */
	bool busy;       /* on the stack: memory stays until it returns */
	struct mlx5vfio_eq *next;
};

static int tell_watch(struct mlx5vfio_eq *eq, bool want)
{
	struct mlx5vfio *dev = eq->dev;
	int err = 0;

	if (want == eq->watching)
		return 0;
	if (dev->ops)
		err = dev->ops->watch(dev->loop, eq->verbs->fd, want ? POLLIN : 0);
	if (!err || !want)
		eq->watching = want;
	return err;
}

void eq_unwatch_all(struct mlx5vfio *dev)
{
	struct mlx5vfio_eq *eq;

	for (eq = dev->eqs; eq; eq = eq->next)
		tell_watch(eq, false);
}

static int check(struct mlx5vfio *dev, const struct mlx5vfio_eq_attr *attr,
		 mlx5vfio_event_fn *on_event)
{
	if (!dev || !attr || !on_event || attr->events & LIBMLX5_EVENTS)
		return -EINVAL;
	if (attr->log_size && (attr->log_size < MIN_LOG_SIZE || attr->log_size > MAX_LOG_SIZE))
		return -EINVAL;
	thread_check(dev);
	if (dev->state != DEVICE_LIVE)
		return -ENODEV;
	if (!device_fd_is_open(dev))
		return -EBADF;
	return health_alive(dev) ? 0 : -ENODEV;
}

static int start(struct mlx5vfio_eq *eq, const struct mlx5vfio_eq_attr *attr)
{
	unsigned log_size = attr->log_size ? attr->log_size : DEFAULT_LOG_SIZE;
	int err;

	eq->verbs = verbs_eq_create(eq->dev->ctx, log_size, attr->events & ~COMPLETIONS);
	if (!eq->verbs)
		return -errno;
	eq->ring = (struct ring){
		.entries = eq->verbs->entries,
		.log_size = log_size,
		.number = eq->verbs->number,
		.uar = eq->verbs->uar_page,
	};
	ring_init(&eq->ring, attr->events);
	err = tell_watch(eq, true);
	if (err)
		verbs_eq_destroy(eq->verbs);
	else
		ring_arm(&eq->ring);
	return err;
}

struct mlx5vfio_eq *mlx5vfio_eq_open(struct mlx5vfio *dev, const struct mlx5vfio_eq_attr *attr,
				     mlx5vfio_event_fn *on_event, void *arg)
{
	int err = check(dev, attr, on_event);
	struct mlx5vfio_eq *eq = err ? NULL : calloc(1, sizeof(*eq));

	if (!eq) {
		errno = err ? -err : ENOMEM;
		return NULL;
	}
	eq->dev = dev;
	eq->on_event = on_event;
	eq->arg = arg;
	eq->full_at = NEVER;
	eq->budget = attr->budget ? attr->budget : DEFAULT_BUDGET;
	err = start(eq, attr);
	if (err) {
		free(eq);
		errno = -err;
		return NULL;
	}
	eq->next = dev->eqs;
	dev->eqs = eq;
	return eq;
}

/* The loop's and our side of it; the device's side is returned. */
static struct verbs_eq *take_apart(struct mlx5vfio_eq *eq)
{
	struct verbs_eq *verbs = eq->verbs;
	struct mlx5vfio_eq **link;

	for (link = &eq->dev->eqs; *link != eq; link = &(*link)->next)
		;
	*link = eq->next;
	eq->verbs = NULL;
	if (!eq->busy)
		free(eq);
	return verbs;
}

/*
 * A device that does not answer would hold us for ever: what the kernel and libmlx5 have of the
 * queue goes with the ctx.
 */
static void destroy(struct verbs_eq *verbs, bool alive)
{
	if (alive)
		verbs_eq_destroy(verbs);
	else
		free(verbs);
}

void mlx5vfio_eq_close(struct mlx5vfio_eq *eq)
{
	bool alive;

	if (!eq || !eq->verbs)
		return;
	thread_check(eq->dev);
	alive = health_alive(eq->dev);
	tell_watch(eq, false);
	destroy(take_apart(eq), alive);
}

void eq_close_all(struct mlx5vfio *dev)
{
	while (dev->eqs)
		mlx5vfio_eq_close(dev->eqs);
}

void eq_forget_all(struct mlx5vfio *dev)
{
	bool alive = dev->eqs && health_alive(dev);

	while (dev->eqs)
		destroy(take_apart(dev->eqs), alive);
}

struct verbs_eq *eq_hand_over(struct mlx5vfio *dev)
{
	struct verbs_eq *queues = NULL, *verbs;
	struct mlx5vfio_eq *eq, *next;

	for (eq = dev->eqs; eq; eq = next) {
		next = eq->next;
		tell_watch(eq, false);
		verbs = take_apart(eq);
		verbs->next = queues;
		queues = verbs;
	}
	return queues;
}

static void hand_out(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event)
{
	eq->dev->stats.events++;
	eq->on_event(eq, event, eq->arg);
}

static bool goes_on(const struct mlx5vfio_eq *eq)
{
	return eq->verbs && eq->dev->state == DEVICE_LIVE;
}

static void tell_overrun(struct mlx5vfio_eq *eq)
{
	const struct mlx5vfio_event event = { .type = MLX5VFIO_EVENT_QUEUE_OVERRUN };

	eq->overrun = true;
	tell_watch(eq, false);
	hand_out(eq, &event);
}

/*
 * Empty: the interrupt is taken back first, so that the one that arming may bring is not lost. An fd
 * that is closed means that the doorbell is gone as well.
 */
static void wait_for_more(struct mlx5vfio_eq *eq)
{
	eventfd_t count;

	if (eventfd_read(eq->verbs->fd, &count) && errno == EBADF)
		device_end_without_fd(eq->dev);
	else
		ring_arm(&eq->ring);
}

static void on_watch_error(struct mlx5vfio_eq *eq)
{
	if (!device_fd_is_open(eq->dev)) {
		device_end_without_fd(eq->dev);
		return;
	}
	tell_watch(eq, false);
	device_report(eq->dev, -EIO);
}

static void drain(struct mlx5vfio_eq *eq)
{
	struct mlx5vfio_event event;
	unsigned left = eq->budget;

	while (left && ring_next(&eq->ring, &event)) {
		left--;
		hand_out(eq, &event);
		if (!goes_on(eq))
			return;
	}
	if (!left)
		ring_update(&eq->ring);
	else if (ring_overrun(&eq->ring))
		tell_overrun(eq);
	else
		wait_for_more(eq);
}

static struct mlx5vfio_eq *find(const struct mlx5vfio *dev, int fd)
{
	struct mlx5vfio_eq *eq = dev->eqs;

	while (eq && eq->verbs->fd != fd)
		eq = eq->next;
	return eq;
}

static void serve(struct mlx5vfio_eq *eq, void (*how)(struct mlx5vfio_eq *eq))
{
	eq->busy = true;
	how(eq);
	eq->busy = false;
	if (!eq->verbs)
		free(eq);
}

bool eq_process(struct mlx5vfio *dev, int fd, int revents)
{
	struct mlx5vfio_eq *eq = find(dev, fd);

	if (!eq)
		return false;
	if (dev->state == DEVICE_LIVE && !eq->busy && eq->watching && revents)
		serve(eq, revents & POLLIN ? drain : on_watch_error);
	return true;
}

/* Queue errors show in the health registers, but not whose they are. */
static bool device_has_queue_error(const struct mlx5vfio *dev)
{
	uint8_t synd = dev->guard.last.synd;

	return guard_active(&dev->guard) && (synd == SYND_EQ_OVERRUN || synd == SYND_EQ_ERROR);
}

/*
 * A device that keeps the old entries and drops the new ones leaves no trace in the queue but that it
 * was full. Firmware may take its time to say so: every tick asks, the first after that time for the last
 * time.
 */
static bool has_dropped_events(struct mlx5vfio_eq *eq)
{
	int64_t now = clock_ms();

	if (ring_was_full(&eq->ring))
		eq->full_at = now;
	if (eq->full_at == NEVER)
		return false;
	if (now - eq->full_at >= SUSPECT_MS)
		eq->full_at = NEVER;
	return device_has_queue_error(eq->dev) && verbs_eq_failed(eq->dev->ctx, eq->verbs);
}

/* The fd stays readable until the queue was found empty: then the loop comes by itself. */
static bool loop_will_come(const struct mlx5vfio_eq *eq)
{
	return eq->watching && device_fd_is_readable(eq->verbs->fd);
}

/* What a lost interrupt leaves behind may be more than the budget: the rest wakes the loop. */
static void drain_forgotten(struct mlx5vfio_eq *eq)
{
	drain(eq);
	if (goes_on(eq) && eq->watching && ring_has_next(&eq->ring))
		eventfd_write(eq->verbs->fd, 1);
}

static void look_after(struct mlx5vfio_eq *eq)
{
	if (ring_has_next(&eq->ring) && !loop_will_come(eq))
		drain_forgotten(eq);
	if (goes_on(eq) && !eq->overrun && !ring_has_next(&eq->ring) && has_dropped_events(eq))
		tell_overrun(eq);
}

/* A handler may close any queue: the list is searched anew after each. */
static struct mlx5vfio_eq *next_unseen(const struct mlx5vfio *dev)
{
	struct mlx5vfio_eq *eq = dev->state == DEVICE_LIVE ? dev->eqs : NULL;

	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a queue leaves the list before it is freed */
	while (eq && (eq->overrun || eq->busy || eq->tick == dev->stats.ticks))
		eq = eq->next;
	return eq;
}

void eq_tick(struct mlx5vfio *dev)
{
	struct mlx5vfio_eq *eq;

	while ((eq = next_unseen(dev))) {
		eq->tick = dev->stats.ticks;
		serve(eq, look_after);
	}
}

int eq_pollfds(const struct mlx5vfio *dev, struct pollfd *fds, int n)
{
	const struct mlx5vfio_eq *eq;
	int count = 0;

	for (eq = dev->eqs; eq; eq = eq->next) {
		if (!eq->watching)
			continue;
		if (count < n)
			fds[count] = (struct pollfd){ .fd = eq->verbs->fd, .events = POLLIN };
		count++;
	}
	return count;
}

uint32_t mlx5vfio_eq_number(const struct mlx5vfio_eq *eq)
{
	return eq ? eq->ring.number : 0;
}

struct mlx5vfio *mlx5vfio_eq_device(const struct mlx5vfio_eq *eq)
{
	return eq ? eq->dev : NULL;
}

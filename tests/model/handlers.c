/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library tells, and whether it may just then. */
#include "world.c"

static struct slot *heard(void *arg, const char *what)
{
	struct listener *listener = arg;

	require(listener->magic == MAGIC, NULL, what);
	require(world.turning, listener->slot, what);
	require(!listener->let_go && listener->slot->listener == listener, listener->slot, what);
	return listener->slot;
}

static void attach(struct slot *slot);
static void set_listener(struct slot *slot, enum reaction reaction);
static void close_by_library(struct slot *slot);
static void set_interval(struct slot *slot, int choice);

static void react(struct slot *slot)
{
	enum reaction reaction = slot->listener->reaction;

	slot->listener->reaction = REACT_NOT;
	switch (reaction) {
	case REACT_DETACH:
		detach(slot);
		break;
	case REACT_DETACH_AND_CLOSE:
		close_ctx(slot);
		break;
	case REACT_CLOSE_BY_LIBRARY:
		close_by_library(slot);
		break;
	case REACT_REATTACH:
		detach(slot);
		attach(slot);
		set_listener(slot, REACT_NOT);
		break;
	case REACT_INTERVAL:
		set_interval(slot, 3);
		break;
	case REACT_LISTEN_ANEW:
		set_listener(slot, REACT_DETACH);
		break;
	default:
		break;
	}
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct slot *slot = heard(arg, ".health at a wrong time");

	require(dev == slot->dev, slot, ".health for another device");
	require(!slot->closing, slot, ".health while closing");
	require(!slot->faults_told, slot, ".health after a fault");
	if (health->fault == MLX5VFIO_OK) {
		require(slot->may_warn, slot, "a warning of nothing");
	} else {
		require(slot->was_faulty, slot, "a fault that was not");
		slot->faults_told++;
		world.told_faults++;
	}
	react(slot);
}

/* At once after a call that went well; when the error only changed, the next may be the tick's. */
static void expect_retry(struct slot *slot, const struct mlx5vfio_stats *stats)
{
	uint64_t successes = stats->calls - stats->errors;
	int tick_ms = slot->interval_ms ? slot->interval_ms : MLX5VFIO_DEFAULT_INTERVAL;
	bool first = !slot->errors_told || successes > slot->successes_at_error;

	slot->retry_ms = first ? RETRY_MS : tick_ms + NOTICE_MS;
	slot->error_turned_ms = 0;
	slot->fresh = true;
	slot->retries_at_error = stats->retries;
	slot->successes_at_error = successes;
	slot->deferred_at_error = stats->deferred;
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	struct slot *slot = heard(arg, ".error at a wrong time");
	struct mlx5vfio_stats stats;

	require(dev == slot->dev && !slot->closing, slot, ".error for another device");
	require(!slot->faults_told, slot, ".error after a fault");
	require(error < 0, slot, ".error without an error");
	require(slot->may_fail || slot->was_faulty, slot, ".error without a reason");
	mlx5vfio_get_stats(dev, &stats, sizeof(stats));
	expect_retry(slot, &stats);
	slot->errors_told++;
	world.told_errors++;
	react(slot);
}

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	struct slot *slot = heard(arg, ".removal at a wrong time");

	require(dev == slot->dev && !slot->closing, slot, ".removal for another device");
	require(slot->removal_asked, slot, ".removal that nobody asked for");
	require(!slot->removals_told++, slot, ".removal twice");
	world.told_removals++;
	react(slot);
}

static void on_closed(int error, void *arg)
{
	struct slot *slot = heard(arg, ".closed at a wrong time");

	require(slot->closing, slot, ".closed without a close");
	require(!error, slot, ".closed with an error");
	world.closed++;
	tested_loop.drop(world.loop, slot->dev);
	forget_attachment(slot);
}

static void on_detached(void *arg)
{
	struct listener *listener = arg;

	require(listener->magic == MAGIC, NULL, ".detached twice");
	require(listener->let_go, listener->slot, ".detached without a detach");
	require(world.turning || world.detaching, listener->slot, ".detached at a wrong time");
	world.let_go--;
	world.detached++;
	memset(listener, 0xdd, sizeof(*listener));
	free(listener);
}

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	struct slot *slot = arg;

	require(world.turning, slot, "an event at a wrong time");
	require(eq == slot->eqs[0] || eq == slot->eqs[1], slot, "an event of a closed queue");
	require(mlx5vfio_eq_device(eq) == slot->dev, slot, "an event of another device");
	require(event->type == MLX5VFIO_EVENT_PORT_STATE_CHANGE, slot, "another event");
	world.told_events++;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model: three devices on one loop, what was done to each, and what therefore may and must
 * happen. Anything else ends the process with a message. The files of the model include one
 * another in this order: ops, world, handlers, operations, turns, run; a test program includes the
 * last after its loop.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mlx5vfio/eq.h>

#include "loop.h"
#include "ops.c"
#include "support/support.h"

enum {
	MOST_EQS = 2,
	PATIENCE_MS = 100000, /* a helper thread may be the last to get a core */
	NOTICE_MS = 60,       /* beyond an interval: by then a tick must have been */
	RETRY_MS = 60,        /* by then a retry must have been */
	DEFERRED_MS = 1200,   /* the guard puts a call off for a second at most */
	MAGIC = 0x6d6c7835,
};

/* What a handler does besides being counted; once. */
enum reaction {
	REACT_NOT,
	REACT_DETACH,
	REACT_DETACH_AND_CLOSE,
	REACT_CLOSE_BY_LIBRARY,
	REACT_REATTACH,
	REACT_INTERVAL,
	REACT_LISTEN_ANEW,
	REACTIONS,
};

struct slot;

/* The arg of handlers. Freed as soon as the library must not use it any more. */
struct listener {
	unsigned magic;
	struct slot *slot;
	enum reaction reaction;
	bool let_go; /* .detached is due: nothing else but .closed may come before */
};

struct slot {
	int number;
	struct ibv_context *ctx;
	struct mlx5vfio *dev;
	struct listener *listener;
	struct mlx5vfio_eq *eqs[MOST_EQS];
	bool closing; /* the library closes it */
	bool by_library;

	/* Of the open device. */
	bool faulty;   /* a fault is on it */
	bool frozen;   /* and it takes two seconds to show */
	bool may_fail; /* process_events has a reason to fail */
	bool removal_asked;
	bool has_thread;
	pthread_t thread;
	int commands;

	/* Of the attachment. */
	int interval_ms;
	bool was_faulty; /* a fault was on it at some time */
	bool may_warn;
	unsigned faults_told, removals_told, errors_told;
	bool missed;           /* the loop turned without handlers */
	bool fresh;            /* something began in this turn: its length says nothing */
	bool dead;             /* a fault was told in an earlier turn */
	int fault_turned_ms;   /* for how long the loop has turned with the fault on */
	int removal_turned_ms; /* likewise */
	int error_turned_ms;   /* for how long it has since .error; -1: nothing is due */
	int retry_ms;          /* when a retry is due then */
	uint64_t retries_at_error, successes_at_error, deferred_at_error;
	struct mlx5vfio_stats stats;
};

static struct {
	void *loop;
	struct slot slots[SLOTS];
	bool turning;   /* handlers may run */
	bool detaching; /* .detached may */
	int let_go;     /* listeners whose .detached is due */
	int fds;
	uint64_t told_faults, told_errors, told_events, told_removals, detached, closed, calls;
} world;

static void require(bool ok, const struct slot *slot, const char *what)
{
	if (!ok)
		support_fail("MODEL: device %d: %s", slot ? slot->number : -1, what);
}

/* ---- The device's side ---------------------------------------------------------------------- */

static void *commands(void *arg)
{
	struct slot *slot = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < slot->commands; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(slot->ctx);

		if (pd)
			ibv_dealloc_pd(pd);
	}
	return NULL;
}

/* An interrupt makes whoever waits look again, also where a doorbell or an interrupt was lost. */
static void nudge(const struct slot *slot)
{
	support_sim("lose-interrupt %d 0", slot->number);
	support_sim("spurious %d", slot->number);
}

static void heal(struct slot *slot)
{
	if (!slot->ctx)
		return;
	support_sim("requests-stop %d", slot->number);
	support_sim("heal %d", slot->number);
	nudge(slot);
	slot->faulty = slot->frozen = false;
	slot->fault_turned_ms = 0;
}

/* A command waits in a dead device until it lives again. */
static void join(struct slot *slot)
{
	if (!slot->has_thread)
		return;
	heal(slot);
	while (pthread_tryjoin_np(slot->thread, NULL)) {
		usleep(100);
		nudge(slot);
	}
	slot->has_thread = false;
}

/* Before a command of our own: nothing may keep its answer from us. */
static void prepare_command(struct slot *slot)
{
	join(slot);
	nudge(slot);
}

/* What is under way at the close would be libmlx5's leak. */
static void drain(const struct slot *slot)
{
	int tries = 1000;

	while (mlx5vfio_sim_settle((unsigned)slot->number, 0) && tries--) {
		struct ibv_pd *pd = ibv_alloc_pd(slot->ctx);

		if (pd)
			ibv_dealloc_pd(pd);
	}
}

static void make_closable(struct slot *slot)
{
	join(slot);
	heal(slot);
	drain(slot);
	require(!support_stats((unsigned)slot->number).violations, slot, "violations");
}

/* ---- Detach --------------------------------------------------------------------------------- */

static void free_listener(struct slot *slot)
{
	struct listener *listener = slot->listener;

	slot->listener = NULL;
	if (!listener)
		return;
	memset(listener, 0xdd, sizeof(*listener));
	free(listener);
}

static void forget_attachment(struct slot *slot)
{
	if (slot->listener) {
		slot->listener->let_go = true;
		slot->listener = NULL;
		world.let_go++;
	}
	slot->dev = NULL;
	slot->closing = false;
	memset(slot->eqs, 0, sizeof(slot->eqs));
}

/*
 * Queues are closed with a command, which would wait for ever in a device that died unnoticed: it
 * is looked at first.
 */
static void look_before_detach(struct slot *slot)
{
	struct mlx5vfio_health health;

	if (slot->closing || (!slot->eqs[0] && !slot->eqs[1]))
		return;
	if (slot->frozen || slot->has_thread)
		prepare_command(slot);
	else if (slot->faulty)
		mlx5vfio_get_health(slot->dev, &health);
	else
		nudge(slot);
}

static void detach(struct slot *slot)
{
	struct mlx5vfio *dev = slot->dev;
	bool before = world.detaching;

	if (!dev)
		return;
	look_before_detach(slot);
	forget_attachment(slot);
	tested_loop.drop(world.loop, dev);
	world.detaching = true;
	mlx5vfio_detach(dev);
	world.detaching = before;
}

static void close_ctx(struct slot *slot)
{
	detach(slot);
	if (!slot->ctx)
		return;
	make_closable(slot);
	require(!ibv_close_device(slot->ctx), slot, "close failed");
	slot->ctx = NULL;
}

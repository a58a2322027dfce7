/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices on one loop that are fed with page requests, and what came of it. Included by scenarios.c
 * after a loop.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <mlx5vfio/core.h>

#include "conformance/libmlx5.h"
#include "model/loop.h"
#include "support/load.h"
#include "support/support.h"

enum {
	MAX_DEVICES = 256,
	CHUNK = 250, /* pages that a device gets before it gives them back */
	CHUNKS = 10, /* that the simulator is told at once */
	LONG = 12,   /* such a burst now and then */
	LONG_EVERY = 64,
	LOOKS = 16,  /* at devices in a turn of the loop: one costs as much as an event */
	TURN_MS = 1, /* at most */
	PATIENCE_MS = 30000,
};

/* A device, what it is still to be fed with, and how its calls and handlers went. */
struct fed {
	unsigned index;
	struct mlx5vfio *dev;
	uint64_t left;    /* page requests */
	uint64_t bursts;  /* so far */
	int returned;     /* by libmlx5's last call */
	uint64_t changes; /* of what it returned, to another error */
	uint64_t told;    /* to .error */
};

static struct {
	void *loop;
	struct load_commands *commands;
	unsigned count;
	struct fed feds[MAX_DEVICES];
	struct ibv_context *ctxs[MAX_DEVICES];
	bool in_bursts;
	unsigned at;      /* the device to look at next */
	int64_t moved_at; /* when one was last seen to get on */
	uint64_t turns;
} load;

/* What is summed up over all devices. */
struct sums {
	uint64_t eqes, consumed, requested, given, interrupts, violations; /* the simulator's */
	uint64_t calls, ticks, errors, deferred;                           /* the library's */
	uint64_t changes, told;                                            /* our own */
};

static struct fed *fed_of(const struct ibv_context *ctx)
{
	for (unsigned i = 0; i < load.count; i++)
		if (load.ctxs[i] == ctx)
			return &load.feds[i];
	return NULL;
}

static void on_return(const struct ibv_context *ctx, int error)
{
	struct fed *fed = fed_of(ctx);

	if (!fed)
		return;
	fed->changes += error && error != fed->returned;
	fed->returned = error;
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	struct fed *fed = arg;

	ck_assert_ptr_eq(dev, fed->dev);
	ck_assert_int_eq(error, fed->returned);
	fed->told++;
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	const struct fed *fed = arg;

	(void)dev;
	ck_abort_msg("device %u: %s", fed->index, mlx5vfio_fault_str(health->fault));
}

static void attach(unsigned index, int interval_ms)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
	};
	struct fed *fed = &load.feds[index];
	char why[256];

	*fed = (struct fed){ .index = index };
	/* of a ctx that it did not open the library does not know the last health check, and waits */
	load.ctxs[index] = mlx5vfio_open(support_pci_name(index), 0, why, sizeof(why));
	ck_assert_msg(load.ctxs[index] != NULL, "%s", why);
	fed->dev = tested_loop.attach(load.loop, load.ctxs[index]);
	ck_assert_msg(fed->dev != NULL, "attach of device %u: errno %d", index, errno);
	mlx5vfio_set_handlers(fed->dev, &handlers, fed);
	ck_assert_int_eq(mlx5vfio_set_interval(fed->dev, interval_ms), 0);
}

static void devices_begin(unsigned count, int interval_ms, bool in_bursts)
{
	load.loop = tested_loop.create();
	load.in_bursts = in_bursts;
	load.at = 0;
	load.turns = 0;
	for (load.count = 0; load.count < count; load.count++)
		attach(load.count, interval_ms);
	libmlx5_watch(on_return);
}

static void release(struct fed *fed)
{
	tested_loop.drop(load.loop, fed->dev);
	mlx5vfio_detach(fed->dev);
	fed->dev = NULL;
}

static void devices_end(void)
{
	libmlx5_watch(NULL);
	for (unsigned i = 0; i < load.count; i++) {
		struct mlx5vfio_sim_stats sim;

		release(&load.feds[i]);
		ck_assert_int_eq(ibv_close_device(load.ctxs[i]), 0);
		load.ctxs[i] = NULL;
		sim = support_stats(i);
		ck_assert_uint_eq(sim.violations, 0);
		ck_assert_uint_eq(sim.dma_maps, 0);
	}
	tested_loop.turn(load.loop, 0);
	ck_assert(tested_loop.destroy(load.loop));
}

/*
 * What a scenario that failed left behind, so that the next one does not fail of it too. A queue that
 * waits for a wakeup of which nothing came is not armed: the commands of the close would wait too.
 */
static void clean_up(void)
{
	uint64_t failed;

	libmlx5_watch(NULL);
	if (load.commands)
		load_commands_stop(load.commands, &failed);
	load.commands = NULL;
	for (unsigned i = 0; i < load.count; i++) {
		if (load.feds[i].dev)
			release(&load.feds[i]);
		if (load.ctxs[i]) {
			mlx5dv_vfio_process_events(load.ctxs[i]);
			ibv_close_device(load.ctxs[i]);
		}
		load.ctxs[i] = NULL;
	}
	load.count = 0;
}

/* Each request waits until the one before it was served. */
static void feed_spaced(struct fed *fed)
{
	for (int i = 0; i < CHUNKS && fed->left; i++) {
		unsigned pages = fed->left < CHUNK ? (unsigned)fed->left : CHUNK;

		support_sim("page-request %u 1 %u spaced", fed->index, pages);
		support_sim("reclaim %u %u 1 spaced", fed->index, pages);
		fed->left -= pages;
	}
}

/* Of three and more libmlx5 drops some, and fails once for each, which costs a retry. */
static void feed_burst(struct fed *fed)
{
	static const unsigned sizes[] = { 2, 3, 2, 1, 2, 4, 2, 2 };
	unsigned size = sizes[fed->bursts++ % (sizeof(sizes) / sizeof(sizes[0]))];

	if (fed->bursts % LONG_EVERY == 0)
		size = LONG;
	if (size > fed->left)
		size = (unsigned)fed->left;
	support_sim("page-request %u 1 %u", fed->index, size);
	fed->left -= size;
}

/* What it was fed last is served, or dropped by libmlx5 where it was a burst. */
static bool is_hungry(const struct mlx5vfio_sim_stats *sim)
{
	return !sim->requests_pending && sim->consumed == sim->eqes &&
	       sim->pages_returned == sim->pages_asked_back &&
	       (load.in_bursts || sim->pages_given == sim->pages_requested);
}

/* False when nothing is left to be fed, and no page left with the device. */
static bool feed(struct fed *fed)
{
	struct mlx5vfio_sim_stats sim = support_stats(fed->index);
	unsigned held = (unsigned)(sim.pages_given - sim.pages_returned);

	if (!is_hungry(&sim))
		return true;
	if (held >= CHUNK || (held && !fed->left))
		support_sim("reclaim %u %u 1 spaced", fed->index, held);
	else if (!fed->left)
		return false;
	else if (load.in_bursts)
		feed_burst(fed);
	else
		feed_spaced(fed);
	load.moved_at = support_now_ms();
	return true;
}

/* Looks at a few devices more; returns how many of them are through. */
static unsigned feed_some(bool through[])
{
	unsigned newly = 0;

	for (unsigned i = 0; i < LOOKS && i < load.count; i++) {
		unsigned at = load.at++ % load.count;

		if (through[at] || feed(&load.feds[at]))
			continue;
		through[at] = true;
		newly++;
	}
	return newly;
}

static void turn(int most_ms)
{
	tested_loop.turn(load.loop, most_ms);
	load.turns++;
}

/* Feeds each device with so many page requests and turns the loop until all are through. */
static void feed_all(uint64_t requests)
{
	bool through[MAX_DEVICES] = { false };
	unsigned left = load.count;

	for (unsigned i = 0; i < load.count; i++)
		load.feds[i].left = requests;
	load.moved_at = support_now_ms();
	while ((left -= feed_some(through))) {
		turn(TURN_MS);
		ck_assert_msg(support_now_ms() - load.moved_at < PATIENCE_MS,
			      "%u devices do not get on", left);
	}
}

static bool all_consumed(void)
{
	for (unsigned i = 0; i < load.count; i++)
		if (mlx5vfio_sim_settle(i, 0))
			return false;
	return true;
}

static void until_consumed(void)
{
	int64_t limit = support_now_ms() + PATIENCE_MS;

	while (!all_consumed() && support_now_ms() < limit)
		turn(TURN_MS);
}

static struct sums sum_up(void)
{
	struct sums sums = { 0 };

	for (unsigned i = 0; i < load.count; i++) {
		struct mlx5vfio_sim_stats sim = support_stats(i);
		struct mlx5vfio_stats stats;

		mlx5vfio_get_stats(load.feds[i].dev, &stats, sizeof(stats));
		sums.eqes += sim.eqes;
		sums.consumed += sim.consumed;
		sums.requested += sim.pages_requested;
		sums.given += sim.pages_given;
		sums.interrupts += sim.interrupts;
		sums.violations += sim.violations;
		sums.calls += stats.calls;
		sums.ticks += stats.ticks;
		sums.errors += stats.errors;
		sums.deferred += stats.deferred;
		sums.changes += load.feds[i].changes;
		sums.told += load.feds[i].told;
	}
	return sums;
}

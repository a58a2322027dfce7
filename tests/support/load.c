/* SPDX-License-Identifier: BSD-2-Clause */
#include <infiniband/mlx5dv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "load.h"
#include "support.h"

enum {
	MAX_THREADS = 8,
	QUERY_ISSI = 0x10a,
};

struct worker {
	struct load_commands *commands;
	pthread_t thread;
	unsigned first; /* of its devices */
	uint64_t done, failed;
};

struct load_commands {
	atomic_bool stop;
	load_command_fn *command;
	unsigned pause_us;
	unsigned threads;
	struct worker workers[MAX_THREADS];
	unsigned count;
	struct ibv_context *ctxs[];
};

bool load_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	return pd && !ibv_dealloc_pd(pd);
}

bool load_query(struct ibv_context *ctx)
{
	uint8_t in[16] = { QUERY_ISSI >> 8, QUERY_ISSI & 0xff };
	uint8_t out[112];

	return !mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out));
}

static void sleep_us(unsigned us)
{
	const struct timespec pause = { .tv_nsec = (long)us * 1000 };

	if (us)
		nanosleep(&pause, NULL);
}

/* Signals stay with the main thread: one that is handled in here would fail the command under way. */
static void *work(void *arg)
{
	struct worker *worker = arg;
	struct load_commands *commands = worker->commands;
	unsigned at = worker->first;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!atomic_load(&commands->stop)) {
		worker->done++;
		worker->failed += !commands->command(commands->ctxs[at]);
		sleep_us(commands->pause_us);
		at += commands->threads;
		if (at >= commands->count)
			at = worker->first;
	}
	return NULL;
}

struct load_commands *load_commands_start(load_command_fn *command, unsigned threads,
					  unsigned pause_us, struct ibv_context *const ctxs[],
					  unsigned count)
{
	struct load_commands *commands;

	support_require(threads <= count && threads <= MAX_THREADS, "too many threads");
	commands = calloc(1, sizeof(*commands) + count * sizeof(struct ibv_context *));
	if (!commands)
		support_fail("no commands");
	for (unsigned i = 0; i < count; i++)
		commands->ctxs[i] = ctxs[i];
	commands->command = command;
	commands->pause_us = pause_us;
	commands->count = count;
	commands->threads = threads;
	for (unsigned i = 0; i < threads; i++) {
		struct worker *worker = &commands->workers[i];

		worker->commands = commands;
		worker->first = i;
		support_require(!pthread_create(&worker->thread, NULL, work, worker), "no thread");
	}
	return commands;
}

uint64_t load_commands_stop(struct load_commands *commands, uint64_t *failed)
{
	uint64_t done = 0;

	*failed = 0;
	atomic_store(&commands->stop, true);
	for (unsigned i = 0; i < commands->threads; i++) {
		pthread_join(commands->workers[i].thread, NULL);
		done += commands->workers[i].done;
		*failed += commands->workers[i].failed;
	}
	free(commands);
	return done;
}

void load_start(const char *name, unsigned dev, struct ibv_context *ctx)
{
	if (!strcmp(name, "storm"))
		support_sim("page-request %u 1 1000000 spaced every 1ms", dev);
	if (!strcmp(name, "commands"))
		load_commands_start(load_pd, 1, 0, &ctx, 1);
}

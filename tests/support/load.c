/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "load.h"
#include "support.h"

/* Signals stay with the main thread: one that is handled in here would fail the command under way. */
static void *commands(void *ctx)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (;;) {
		struct ibv_pd *pd = ibv_alloc_pd(ctx);

		if (pd)
			ibv_dealloc_pd(pd);
	}
	return NULL;
}

void load_start(const char *name, unsigned dev, struct ibv_context *ctx)
{
	pthread_t thread;

	if (!strcmp(name, "storm"))
		support_sim("page-request %u 1 1000000 spaced every 1ms", dev);
	if (!strcmp(name, "commands"))
		support_require(!pthread_create(&thread, NULL, commands, ctx), "no thread");
}

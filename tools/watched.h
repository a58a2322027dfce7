/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of one monitored device: opened on a worker, attached on the loop, closed by the
 * library.
 */
#ifndef TOOLS_WATCHED_H
#define TOOLS_WATCHED_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include <mlx5vfio/core.h>

#include "report.h"

enum watched_state {
	WATCHED_OPENING,
	WATCHED_LIVE,
	WATCHED_CLOSING,
	/* ends */
	WATCHED_CLOSED,
	WATCHED_CANCELLED,  /* told to stop before it was opened */
	WATCHED_NOT_OPENED, /* cannot be opened, or not attached */
	WATCHED_DEAD,       /* a fault; it may still be closing */
	WATCHED_ABANDONED,  /* a thread still opens or closes it */
};

struct watched {
	const char *pci;
	uv_loop_t *loop;
	struct report *report;
	void (*ended)(struct watched *watched); /* runs once, on the loop */
	void *owner;
	int interval_ms; /* -1: the library's default */
	bool unguarded;  /* let libmlx5 abort */

	enum watched_state state;
	bool stopping; /* do not attach any more */
	uv_work_t work;
	struct ibv_context *ctx;
	struct mlx5vfio *dev; /* while WATCHED_LIVE */
	char why[512];
	uint64_t work_started;
	uint64_t attached_at, detached_at;
	struct mlx5vfio_stats stats;
	uint64_t wakeups_shown;
};

/* The fields up to unguarded are the caller's to set, the others zero. */
int watched_open(struct watched *watched);

/* Detaches and closes a live device; one that is being opened is closed when it is open. */
void watched_stop(struct watched *watched);

/* Gives up waiting for the worker. True if there was one, which must not be waited for at exit. */
bool watched_abandon(struct watched *watched);

/* Reports the wakeups since the last call, if there were any. */
void watched_show_wakeups(struct watched *watched);

bool watched_has_ended(const struct watched *watched);
struct report_row watched_summary(const struct watched *watched);

#endif

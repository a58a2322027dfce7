/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a scenario plays: a loop, and on it a watcher and a timer of the program's own, which must
 * go on whatever happens to the devices beside them.
 */
#ifndef CONFORMANCE_STAGE_H
#define CONFORMANCE_STAGE_H

#include <stdbool.h>

#include "driver.h"

struct stage {
	const struct loop_driver *driver;
	void *loop;
	int fds; /* open before the scenario */

	int pipe[2];
	void *watcher, *timer;
	unsigned reads, ticks; /* what the program's own watchers saw */
};

void stage_begin(struct stage *stage, const struct loop_driver *driver);

/* Ends the program's own watchers early, so that only devices are left on the loop. */
void stage_alone(struct stage *stage);

/* Checks that the program's own watchers still run. */
void stage_check_others(struct stage *stage);

/* Checks that nothing is left: neither on the loop nor an fd. */
void stage_end(struct stage *stage);

/* For scenarios that destroyed the loop by themselves. */
void stage_end_without_loop(struct stage *stage);

/* One turn; false when nothing keeps the loop alive. */
bool stage_turn(struct stage *stage);

/* Turns until ms milliseconds have passed. */
void stage_run(struct stage *stage, int ms);

/* Turns until done(arg); false when that takes longer than any machine may need. */
bool stage_until(struct stage *stage, bool (*done)(void *arg), void *arg);

/* Sleeps with the loop standing still, as a program does that computes in a callback. */
void stage_block(int ms);

/* Sleeps until fd is readable, without a turn. */
void stage_wait_readable(int fd);

#endif

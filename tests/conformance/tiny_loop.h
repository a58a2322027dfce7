/* SPDX-License-Identifier: BSD-2-Clause */
/* The smallest event loop on poll(2): somebody's own, for the two ways to bring one's own loop. */
#ifndef CONFORMANCE_TINY_LOOP_H
#define CONFORMANCE_TINY_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* An fd, a timer, or both. Set fd to -1 and due_ms to TINY_NEVER for none. */
struct tiny_source {
	int fd;
	int64_t due_ms; /* of CLOCK_MONOTONIC */
	bool unreferenced;
	void (*refresh)(struct tiny_source *source); /* before each turn; may be NULL */
	void (*on_ready)(struct tiny_source *source, int revents);
	void (*on_due)(struct tiny_source *source);
	void *arg;

	bool dead; /* removed, and freed when the turn is over */
	struct tiny_source *next;
};

#define TINY_NEVER INT64_MAX

struct tiny_loop {
	struct tiny_source *sources;
};

struct tiny_loop *tiny_loop_new(void);
void tiny_loop_free(struct tiny_loop *loop);

struct tiny_source *tiny_add(struct tiny_loop *loop);
void tiny_remove(struct tiny_source *source);

/* One turn; true if something keeps the loop alive. */
bool tiny_turn(struct tiny_loop *loop, int max_ms);

/* The parts of a loop_driver that do not depend on how devices are attached. */
void *tiny_driver_create(void);
bool tiny_driver_destroy(void *loop);
void tiny_driver_wreck(void *loop);
bool tiny_driver_turn(void *loop, int max_ms);
void tiny_driver_run(void *loop);
void *tiny_driver_watch(void *loop, int fd, void (*fn)(void *arg), void *arg);
void *tiny_driver_start_timer(void *loop, int ms, void (*fn)(void *arg), void *arg);
void tiny_driver_stop(void *watcher);

#endif

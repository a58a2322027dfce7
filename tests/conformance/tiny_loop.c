/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "support/support.h"
#include "tiny_loop.h"

#define MAX_SOURCES 64

struct tiny_loop *tiny_loop_new(void)
{
	return calloc(1, sizeof(struct tiny_loop));
}

static void sweep(struct tiny_loop *loop, bool all)
{
	struct tiny_source **link = &loop->sources;

	while (*link) {
		struct tiny_source *source = *link;

		if (!all && !source->dead) {
			link = &source->next;
			continue;
		}
		*link = source->next;
		free(source);
	}
}

void tiny_loop_free(struct tiny_loop *loop)
{
	sweep(loop, true);
	free(loop);
}

struct tiny_source *tiny_add(struct tiny_loop *loop)
{
	struct tiny_source *source = calloc(1, sizeof(*source));

	if (!source)
		return NULL;
	source->fd = -1;
	source->due_ms = TINY_NEVER;
	source->next = loop->sources;
	loop->sources = source;
	return source;
}

void tiny_remove(struct tiny_source *source)
{
	source->dead = true;
}

static int prepare(struct tiny_loop *loop, struct pollfd *fds, struct tiny_source **sources)
{
	int n = 0;

	for (struct tiny_source *source = loop->sources; source; source = source->next) {
		if (source->dead)
			continue;
		ck_assert_int_lt(n, MAX_SOURCES);
		if (source->refresh)
			source->refresh(source);
		sources[n] = source;
		fds[n++] = (struct pollfd){ .fd = source->fd, .events = POLLIN };
	}
	return n;
}

static bool is_alive(const struct tiny_loop *loop)
{
	for (const struct tiny_source *source = loop->sources; source; source = source->next) {
		if (source->dead || source->unreferenced)
			continue;
		if (source->fd >= 0 || source->due_ms != TINY_NEVER)
			return true;
	}
	return false;
}

static int wait_ms(const struct tiny_loop *loop, int max_ms)
{
	int64_t now = support_now_ms();
	int64_t left = max_ms;

	for (const struct tiny_source *source = loop->sources; source; source = source->next)
		if (!source->dead && source->due_ms != TINY_NEVER && source->due_ms - now < left)
			left = source->due_ms > now ? source->due_ms - now : 0;
	return is_alive(loop) ? (int)left : 0;
}

/* A callback may have removed any source, or stopped its fd or timer, before its turn comes. */
static void dispatch(struct tiny_source *source, const struct pollfd *pollfd)
{
	if (!source->dead && support_now_ms() >= source->due_ms) {
		source->due_ms = TINY_NEVER;
		source->on_due(source);
	}
	if (!source->dead && pollfd->revents && source->fd == pollfd->fd)
		source->on_ready(source, pollfd->revents);
}

bool tiny_turn(struct tiny_loop *loop, int max_ms)
{
	struct tiny_source *sources[MAX_SOURCES];
	struct pollfd fds[MAX_SOURCES];
	int n = prepare(loop, fds, sources);
	int ready = poll(fds, (nfds_t)n, wait_ms(loop, max_ms));

	ck_assert(ready >= 0 || errno == EINTR);
	for (int i = 0; i < n; i++) {
		if (ready < 0)
			fds[i].revents = 0;
		dispatch(sources[i], &fds[i]);
	}
	sweep(loop, false);
	return is_alive(loop);
}

void *tiny_driver_create(void)
{
	return tiny_loop_new();
}

bool tiny_driver_destroy(void *loop)
{
	struct tiny_loop *tiny = loop;
	bool clean;

	sweep(tiny, false);
	clean = !tiny->sources;
	tiny_loop_free(tiny);
	return clean;
}

void tiny_driver_wreck(void *loop)
{
	tiny_loop_free(loop);
}

bool tiny_driver_turn(void *loop, int max_ms)
{
	return tiny_turn(loop, max_ms);
}

void tiny_driver_run(void *loop)
{
	while (tiny_turn(loop, 1000))
		;
}

/* The program's own watchers. */
struct own {
	void (*fn)(void *arg);
	void *arg;
	int period_ms;
	struct tiny_source *source;
};

static void own_ready(struct tiny_source *source, int revents)
{
	struct own *own = source->arg;

	(void)revents;
	own->fn(own->arg);
}

static void own_due(struct tiny_source *source)
{
	struct own *own = source->arg;

	source->due_ms = support_now_ms() + own->period_ms;
	own->fn(own->arg);
}

static struct own *add_own(void *loop, void (*fn)(void *arg), void *arg)
{
	struct own *own = calloc(1, sizeof(*own));

	ck_assert_ptr_nonnull(own);
	own->fn = fn;
	own->arg = arg;
	own->source = tiny_add(loop);
	ck_assert_ptr_nonnull(own->source);
	own->source->arg = own;
	own->source->on_ready = own_ready;
	own->source->on_due = own_due;
	return own;
}

void *tiny_driver_watch(void *loop, int fd, void (*fn)(void *arg), void *arg)
{
	struct own *own = add_own(loop, fn, arg);

	own->source->fd = fd;
	return own;
}

void *tiny_driver_start_timer(void *loop, int ms, void (*fn)(void *arg), void *arg)
{
	struct own *own = add_own(loop, fn, arg);

	own->period_ms = ms;
	own->source->due_ms = support_now_ms() + ms;
	return own;
}

void tiny_driver_stop(void *watcher)
{
	struct own *own = watcher;

	tiny_remove(own->source);
	free(own);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; valgrind timeout=400 seconds=38 */
/*
 * The conformance scenarios on libevent, and the brief ones with its other backends, and with its
 * locks and priorities.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <event2/event.h>

#include <mlx5vfio/libevent.h>

#include "conformance/suite.h"
#include "support/support.h"

#define PRIORITIES 3

struct loop {
	struct event_base *base;
	struct event
		*limit; /* of a turn; not there between turns, as it would keep the loop alive */
};

static void on_limit(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	(void)arg;
}

static struct loop *new_loop(struct event_base *base)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	ck_assert_ptr_nonnull(base);
	ck_assert_ptr_nonnull(loop);
	loop->base = base;
	loop->limit = evtimer_new(base, on_limit, NULL);
	return loop;
}

static void *create(void)
{
	return new_loop(event_base_new());
}

static struct event_base *base_without(const char *const methods[])
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	for (; *methods; methods++)
		event_config_avoid_method(config, *methods);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

static void *create_on_poll(void)
{
	static const char *const others[] = { "epoll", "select", NULL };
	struct loop *loop = new_loop(base_without(others));

	ck_assert_str_eq(event_base_get_method(loop->base), "poll");
	return loop;
}

static void *create_on_select(void)
{
	static const char *const others[] = { "epoll", "poll", NULL };
	struct loop *loop = new_loop(base_without(others));

	ck_assert_str_eq(event_base_get_method(loop->base), "select");
	return loop;
}

/* The locks are in a library of their own. Once on, they stay on for all bases made later. */
static void *create_with_locks(void)
{
	void *library = dlopen("libevent_pthreads-2.1.so.7", RTLD_NOW);
	int (*use_pthreads)(void);
	struct loop *loop;

	ck_assert_msg(library != NULL, "%s", dlerror());
	*(void **)&use_pthreads = dlsym(library, "evthread_use_pthreads");
	ck_assert_int_eq(use_pthreads(), 0);
	loop = new_loop(event_base_new());
	ck_assert_int_eq(event_base_priority_init(loop->base, PRIORITIES), 0);
	ck_assert_int_eq(event_base_get_npriorities(loop->base), PRIORITIES);
	return loop;
}

static void wreck(void *arg)
{
	struct loop *loop = arg;

	event_free(loop->limit);
	event_base_free(loop->base);
	free(loop);
}

static bool is_alive(const struct loop *loop)
{
	return event_base_get_num_events(loop->base, EVENT_BASE_COUNT_ADDED) > 0;
}

static bool destroy(void *arg)
{
	bool clean = !is_alive(arg);

	wreck(arg);
	return clean;
}

static struct mlx5vfio *attach(void *arg, struct ibv_context *ctx)
{
	struct loop *loop = arg;

	return mlx5vfio_libevent_attach(loop ? loop->base : NULL, ctx);
}

static bool turn(void *arg, int max_ms)
{
	struct timeval limit = { max_ms / 1000, max_ms % 1000 * 1000 };
	struct loop *loop = arg;

	if (max_ms && is_alive(loop)) {
		evtimer_add(loop->limit, &limit);
		event_base_loop(loop->base, EVLOOP_ONCE);
		evtimer_del(loop->limit);
	} else {
		event_base_loop(loop->base, EVLOOP_NONBLOCK);
	}
	return is_alive(loop);
}

static void run(void *arg)
{
	struct loop *loop = arg;

	event_base_dispatch(loop->base);
}

struct watcher {
	struct event *event;
	void (*fn)(void *arg);
	void *arg;
};

static void on_event(evutil_socket_t fd, short events, void *arg)
{
	const struct watcher *watcher = arg;

	(void)fd;
	(void)events;
	watcher->fn(watcher->arg);
}

static struct watcher *add_watcher(struct loop *loop, int fd, short events,
				   const struct timeval *period)
{
	struct watcher *watcher = calloc(1, sizeof(*watcher));

	ck_assert_ptr_nonnull(watcher);
	watcher->event = event_new(loop->base, fd, (short)(events | EV_PERSIST), on_event, watcher);
	ck_assert_int_eq(event_add(watcher->event, period), 0);
	return watcher;
}

static void *watch(void *arg, int fd, void (*fn)(void *arg), void *fn_arg)
{
	struct watcher *watcher = add_watcher(arg, fd, EV_READ, NULL);

	watcher->fn = fn;
	watcher->arg = fn_arg;
	return watcher;
}

static void *start_timer(void *arg, int ms, void (*fn)(void *arg), void *fn_arg)
{
	struct timeval period = { ms / 1000, ms % 1000 * 1000 };
	struct watcher *watcher = add_watcher(arg, -1, 0, &period);

	watcher->fn = fn;
	watcher->arg = fn_arg;
	return watcher;
}

static void stop(void *arg)
{
	struct watcher *watcher = arg;

	event_free(watcher->event);
	free(watcher);
}

static struct loop_driver driver_named(const char *name, void *(*make)(void))
{
	return (struct loop_driver){
		.name = name,
		.no_unref = "libevent has no way to take an event out of its count",
		.no_fd_errors = "libevent calls an error on an fd readable",
		.create = make,
		.destroy = destroy,
		.wreck = wreck,
		.attach = attach,
		.turn = turn,
		.run = run,
		.watch = watch,
		.unwatch = stop,
		.start_timer = start_timer,
		.stop_timer = stop,
	};
}

int main(void)
{
	struct loop_driver epoll = driver_named("libevent", create);
	struct loop_driver poll = driver_named("libevent on poll", create_on_poll);
	struct loop_driver select = driver_named("libevent on select", create_on_select);
	struct loop_driver locks = driver_named("libevent with locks", create_with_locks);
	const struct loop_driver *const drivers[] = { &epoll, &poll, &select, &locks };

	return suite_run(drivers, 4);
}

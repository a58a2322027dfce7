/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; valgrind timeout=400 seconds=35 */
/* The conformance scenarios on libev, and the brief ones with its other backends. */
#include <stdlib.h>
#include <ev.h>

#include <mlx5vfio/libev.h>

#include "conformance/suite.h"
#include "support/support.h"

/* A timer that does not stop by itself when it fires: that would upset the count of references. */
#define NEVER_AGAIN 1e6

struct loop {
	struct ev_loop *ev;
	ev_timer limit;
};

static void on_limit(struct ev_loop *ev, ev_timer *timer, int revents)
{
	(void)ev;
	(void)timer;
	(void)revents;
}

static void *new_loop(unsigned backend)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	ck_assert_ptr_nonnull(loop);
	loop->ev = ev_loop_new(backend | EVFLAG_NOENV);
	ck_assert_ptr_nonnull(loop->ev);
	ck_assert(!backend || ev_backend(loop->ev) == backend);
	ev_timer_init(&loop->limit, on_limit, 0., NEVER_AGAIN);
	return loop;
}

static void *create_on_epoll(void)
{
	return new_loop(EVBACKEND_EPOLL);
}

static void *create_on_poll(void)
{
	return new_loop(EVBACKEND_POLL);
}

static void *create_on_select(void)
{
	return new_loop(EVBACKEND_SELECT);
}

static void wreck(void *arg)
{
	struct loop *loop = arg;

	ev_loop_destroy(loop->ev);
	free(loop);
}

/* No reference may be missing either: a watcher of the program's must be counted as one. */
static bool destroy(void *arg)
{
	struct loop *loop = arg;
	bool clean = !ev_run(loop->ev, EVRUN_NOWAIT);

	ev_ref(loop->ev);
	clean = clean && ev_run(loop->ev, EVRUN_NOWAIT) == 1;
	ev_unref(loop->ev);
	wreck(loop);
	return clean;
}

static struct mlx5vfio *attach(void *arg, struct ibv_context *ctx)
{
	struct loop *loop = arg;

	return mlx5vfio_libev_attach(loop ? loop->ev : NULL, ctx);
}

static bool turn(void *arg, int max_ms)
{
	struct loop *loop = arg;
	int alive;

	if (!max_ms)
		return ev_run(loop->ev, EVRUN_NOWAIT) != 0;
	ev_now_update(loop->ev);
	ev_timer_set(&loop->limit, max_ms / 1000., NEVER_AGAIN);
	ev_timer_start(loop->ev, &loop->limit);
	ev_unref(loop->ev);
	alive = ev_run(loop->ev, EVRUN_ONCE);
	ev_ref(loop->ev);
	ev_timer_stop(loop->ev, &loop->limit);
	return alive != 0;
}

static void run(void *arg)
{
	struct loop *loop = arg;

	ev_run(loop->ev, 0);
}

struct watcher {
	union {
		ev_io io;
		ev_timer timer;
	};
	struct ev_loop *ev;
	void (*fn)(void *arg);
	void *arg;
};

static struct watcher *new_watcher(const struct loop *loop, void (*fn)(void *arg), void *arg)
{
	struct watcher *watcher = calloc(1, sizeof(*watcher));

	ck_assert_ptr_nonnull(watcher);
	watcher->ev = loop->ev;
	watcher->fn = fn;
	watcher->arg = arg;
	return watcher;
}

static void on_io(struct ev_loop *ev, ev_io *io, int revents)
{
	const struct watcher *watcher = (const struct watcher *)io;

	(void)ev;
	ck_assert_int_eq(revents, EV_READ);
	watcher->fn(watcher->arg);
}

static void on_timer(struct ev_loop *ev, ev_timer *timer, int revents)
{
	const struct watcher *watcher = (const struct watcher *)timer;

	(void)ev;
	(void)revents;
	watcher->fn(watcher->arg);
}

static void *watch(void *arg, int fd, void (*fn)(void *arg), void *fn_arg)
{
	struct watcher *watcher = new_watcher(arg, fn, fn_arg);

	ev_io_init(&watcher->io, on_io, fd, EV_READ);
	ev_io_start(watcher->ev, &watcher->io);
	return watcher;
}

static void unwatch(void *arg)
{
	struct watcher *watcher = arg;

	ev_io_stop(watcher->ev, &watcher->io);
	free(watcher);
}

static void *start_timer(void *arg, int ms, void (*fn)(void *arg), void *fn_arg)
{
	struct watcher *watcher = new_watcher(arg, fn, fn_arg);

	ev_timer_init(&watcher->timer, on_timer, ms / 1000., ms / 1000.);
	ev_timer_start(watcher->ev, &watcher->timer);
	return watcher;
}

static void stop_timer(void *arg)
{
	struct watcher *watcher = arg;

	ev_timer_stop(watcher->ev, &watcher->timer);
	free(watcher);
}

static struct loop_driver driver_named(const char *name, void *(*make)(void))
{
	return (struct loop_driver){
		.name = name,
		.no_fd_errors = "libev calls an error on an fd readable",
		.create = make,
		.destroy = destroy,
		.wreck = wreck,
		.attach = attach,
		.turn = turn,
		.run = run,
		.watch = watch,
		.unwatch = unwatch,
		.start_timer = start_timer,
		.stop_timer = stop_timer,
	};
}

int main(void)
{
	struct loop_driver epoll = driver_named("libev", create_on_epoll);
	struct loop_driver poll = driver_named("libev on poll", create_on_poll);
	struct loop_driver select = driver_named("libev on select", create_on_select);
	const struct loop_driver *const drivers[] = { &epoll, &poll, &select };

	return suite_run(drivers, 3);
}

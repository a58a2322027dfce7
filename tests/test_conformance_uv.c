/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; valgrind timeout=400 seconds=22 */
/* The conformance scenarios on libuv. */
#include <stdlib.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "conformance/suite.h"
#include "support/support.h"

struct loop {
	uv_loop_t uv;
	uv_timer_t limit; /* of a turn; does not keep the loop alive */
};

static void on_limit(uv_timer_t *timer)
{
	(void)timer;
}

static void *create(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	ck_assert_ptr_nonnull(loop);
	ck_assert_int_eq(uv_loop_init(&loop->uv), 0);
	uv_timer_init(&loop->uv, &loop->limit);
	uv_unref((uv_handle_t *)&loop->limit);
	return loop;
}

/* After a detach one turn must be enough. */
static bool destroy(void *arg)
{
	struct loop *loop = arg;
	int err;

	uv_close((uv_handle_t *)&loop->limit, NULL);
	uv_run(&loop->uv, UV_RUN_NOWAIT);
	err = uv_loop_close(&loop->uv);
	if (!err)
		free(loop);
	return !err;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* What programs do that do not know whose handles are on their loop. */
static void wreck(void *arg)
{
	struct loop *loop = arg;

	uv_walk(&loop->uv, close_handle, NULL);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop->uv), 0);
	free(loop);
}

static struct mlx5vfio *attach(void *arg, struct ibv_context *ctx)
{
	struct loop *loop = arg;

	return mlx5vfio_uv_attach(loop ? &loop->uv : NULL, ctx);
}

/* The limit repeats: libuv may fire it before it polls, and would then poll without one. */
static bool turn(void *arg, int max_ms)
{
	struct loop *loop = arg;

	if (max_ms)
		uv_timer_start(&loop->limit, on_limit, (uint64_t)max_ms, (uint64_t)max_ms);
	uv_run(&loop->uv, max_ms ? UV_RUN_ONCE : UV_RUN_NOWAIT);
	uv_timer_stop(&loop->limit);
	return uv_loop_alive(&loop->uv);
}

static void run(void *arg)
{
	struct loop *loop = arg;

	uv_run(&loop->uv, UV_RUN_DEFAULT);
}

struct watcher {
	union {
		uv_handle_t handle;
		uv_poll_t poll;
		uv_timer_t timer;
	};
	void (*fn)(void *arg);
	void *arg;
};

static struct watcher *new_watcher(void (*fn)(void *arg), void *arg)
{
	struct watcher *watcher = calloc(1, sizeof(*watcher));

	ck_assert_ptr_nonnull(watcher);
	watcher->fn = fn;
	watcher->arg = arg;
	return watcher;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	const struct watcher *watcher = (const struct watcher *)poll;

	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(events, UV_READABLE);
	watcher->fn(watcher->arg);
}

static void on_timer(uv_timer_t *timer)
{
	const struct watcher *watcher = (const struct watcher *)timer;

	watcher->fn(watcher->arg);
}

static void *watch(void *arg, int fd, void (*fn)(void *arg), void *fn_arg)
{
	struct watcher *watcher = new_watcher(fn, fn_arg);
	struct loop *loop = arg;

	ck_assert_int_eq(uv_poll_init(&loop->uv, &watcher->poll, fd), 0);
	ck_assert_int_eq(uv_poll_start(&watcher->poll, UV_READABLE, on_poll), 0);
	return watcher;
}

static void *start_timer(void *arg, int ms, void (*fn)(void *arg), void *fn_arg)
{
	struct watcher *watcher = new_watcher(fn, fn_arg);
	struct loop *loop = arg;

	uv_timer_init(&loop->uv, &watcher->timer);
	uv_timer_start(&watcher->timer, on_timer, (uint64_t)ms, (uint64_t)ms);
	return watcher;
}

static void free_watcher(uv_handle_t *handle)
{
	free(handle);
}

static void stop(void *arg)
{
	struct watcher *watcher = arg;

	uv_close(&watcher->handle, free_watcher);
}

static const struct loop_driver libuv = {
	.name = "libuv",
	.create = create,
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

int main(void)
{
	static const struct loop_driver *const drivers[] = { &libuv };

	return suite_run(drivers, 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* libuv: the glue as it is written by hand, and the program that measures it against ours. */
#include "common/bench.c"

#include <uv.h>

#include <mlx5vfio/uv.h>

/* ---- By hand: a poll handle, and a timer so that libmlx5 checks health ---------------------- */

struct glue {
	uv_poll_t poll;
	uv_timer_t timer;
	struct ibv_context *ctx;
	int handles;
};

static void process(const struct glue *glue)
{
	int err = mlx5dv_vfio_process_events(glue->ctx);

	if (err)
		fprintf(stderr, "process_events: %d\n", err);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	(void)events;
	if (status < 0)
		fprintf(stderr, "poll: %s\n", uv_strerror(status));
	else
		process(poll->data);
}

static void on_timer(uv_timer_t *timer)
{
	process(timer->data);
}

static void *glue_attach(void *loop, struct ibv_context *ctx)
{
	struct glue *glue = calloc(1, sizeof(*glue));

	if (!glue)
		return NULL;
	glue->ctx = ctx;
	glue->poll.data = glue;
	glue->timer.data = glue;
	glue->handles = 2;
	uv_poll_init(loop, &glue->poll, mlx5dv_vfio_get_events_fd(ctx));
	uv_timer_init(loop, &glue->timer);
	uv_poll_start(&glue->poll, UV_READABLE, on_poll);
	uv_timer_start(&glue->timer, on_timer, 1000, 1000);
	return glue;
}

static void on_closed(uv_handle_t *handle)
{
	struct glue *glue = handle->data;

	if (!--glue->handles)
		free(glue);
}

static void glue_detach(void *attached)
{
	struct glue *glue = attached;

	uv_close((uv_handle_t *)&glue->poll, on_closed);
	uv_close((uv_handle_t *)&glue->timer, on_closed);
}

/* ---- The dedicated thread ------------------------------------------------------------------- */

static void on_async(uv_async_t *async)
{
	(void)async;
	handed_over();
}

static void wake(void *async)
{
	uv_async_send(async);
}

static void *thread_attach(void *loop, struct ibv_context *ctx)
{
	uv_async_t *async = calloc(1, sizeof(*async));

	if (!async)
		return NULL;
	uv_async_init(loop, async, on_async);
	dedicated_thread(ctx, wake, async);
	return async;
}

/* ---- Ours, and the loop --------------------------------------------------------------------- */

static void *ours_attach(void *loop, struct ibv_context *ctx)
{
	return mlx5vfio_uv_attach(loop, ctx);
}

static void ours_detach(void *attached)
{
	mlx5vfio_detach(attached);
}

static void *loop_new(void)
{
	uv_loop_t *loop = calloc(1, sizeof(*loop));

	return loop && !uv_loop_init(loop) ? loop : NULL;
}

static void loop_run(void *loop)
{
	uv_run(loop, UV_RUN_DEFAULT);
}

static void loop_stop(void *loop)
{
	uv_stop(loop);
}

static void loop_turn(void *loop)
{
	uv_run(loop, UV_RUN_NOWAIT);
}

static const struct side sides[] = {
	{ "ours", true, loop_new, ours_attach, ours_detach, loop_run, loop_stop, loop_turn },
	{ "hand", false, loop_new, glue_attach, glue_detach, loop_run, loop_stop, loop_turn },
	{ "thread", false, loop_new, thread_attach, NULL, loop_run, loop_stop, loop_turn },
	{ 0 },
};

int main(int argc, char *argv[])
{
	return bench_main(argc, argv, sides);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* libev: the glue as it is written by hand, and the program that measures it against ours. */
#include "common/bench.c"

#include <ev.h>

#include <mlx5vfio/libev.h>

/* ---- By hand: an io watcher, and a timer so that libmlx5 checks health ---------------------- */

struct glue {
	ev_io io;
	ev_timer timer;
	struct ev_loop *loop;
	struct ibv_context *ctx;
};

static void process(const struct glue *glue)
{
	int err = mlx5dv_vfio_process_events(glue->ctx);

	if (err)
		fprintf(stderr, "process_events: %d\n", err);
}

static void on_io(struct ev_loop *loop, ev_io *io, int revents)
{
	(void)loop;
	(void)revents;
	process(io->data);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	process(timer->data);
}

static void *glue_attach(void *loop, struct ibv_context *ctx)
{
	struct glue *glue = calloc(1, sizeof(*glue));

	if (!glue)
		return NULL;
	glue->loop = loop;
	glue->ctx = ctx;
	ev_io_init(&glue->io, on_io, mlx5dv_vfio_get_events_fd(ctx), EV_READ);
	ev_timer_init(&glue->timer, on_timer, 1., 1.);
	glue->io.data = glue;
	glue->timer.data = glue;
	ev_io_start(loop, &glue->io);
	ev_timer_start(loop, &glue->timer);
	return glue;
}

static void glue_detach(void *attached)
{
	struct glue *glue = attached;

	ev_io_stop(glue->loop, &glue->io);
	ev_timer_stop(glue->loop, &glue->timer);
	free(glue);
}

/* ---- The dedicated thread ------------------------------------------------------------------- */

struct told {
	ev_async async;
	struct ev_loop *loop;
};

static void on_async(struct ev_loop *loop, ev_async *async, int revents)
{
	(void)loop;
	(void)async;
	(void)revents;
	handed_over();
}

static void wake(void *arg)
{
	struct told *told = arg;

	ev_async_send(told->loop, &told->async);
}

static void *thread_attach(void *loop, struct ibv_context *ctx)
{
	struct told *told = calloc(1, sizeof(*told));

	if (!told)
		return NULL;
	told->loop = loop;
	ev_async_init(&told->async, on_async);
	ev_async_start(loop, &told->async);
	dedicated_thread(ctx, wake, told);
	return told;
}

/* ---- Ours, and the loop --------------------------------------------------------------------- */

static void *ours_attach(void *loop, struct ibv_context *ctx)
{
	return mlx5vfio_libev_attach(loop, ctx);
}

static void ours_detach(void *attached)
{
	mlx5vfio_detach(attached);
}

static void *loop_new(void)
{
	return ev_loop_new(EVFLAG_AUTO);
}

static void loop_run(void *loop)
{
	ev_run(loop, 0);
}

static void loop_stop(void *loop)
{
	ev_break(loop, EVBREAK_ALL);
}

static void loop_turn(void *loop)
{
	ev_run(loop, EVRUN_NOWAIT);
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

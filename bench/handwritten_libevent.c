/* SPDX-License-Identifier: BSD-2-Clause */
/* libevent: the glue as it is written by hand, and the program that measures it against ours. */
#include "common/bench.c"

#include <event2/event.h>

#include <mlx5vfio/libevent.h>

/* ---- By hand: a persistent event, and a timer so that libmlx5 checks health ----------------- */

struct glue {
	struct event *readable;
	struct event *timer;
	struct ibv_context *ctx;
};

static void process(evutil_socket_t fd, short events, void *arg)
{
	const struct glue *glue = arg;
	int err = mlx5dv_vfio_process_events(glue->ctx);

	(void)fd;
	(void)events;
	if (err)
		fprintf(stderr, "process_events: %d\n", err);
}

static void *glue_attach(void *loop, struct ibv_context *ctx)
{
	static const struct timeval second = { 1, 0 };
	struct glue *glue = calloc(1, sizeof(*glue));

	if (!glue)
		return NULL;
	glue->ctx = ctx;
	glue->readable = event_new(loop, mlx5dv_vfio_get_events_fd(ctx), EV_READ | EV_PERSIST,
				   process, glue);
	glue->timer = event_new(loop, -1, EV_PERSIST, process, glue);
	event_add(glue->readable, NULL);
	event_add(glue->timer, &second);
	return glue;
}

static void glue_detach(void *attached)
{
	struct glue *glue = attached;

	event_free(glue->readable);
	event_free(glue->timer);
	free(glue);
}

/* ---- The dedicated thread ------------------------------------------------------------------- */

static void on_told(evutil_socket_t fd, short events, void *arg)
{
	eventfd_t count;

	(void)events;
	(void)arg;
	eventfd_read((int)fd, &count);
	handed_over();
}

static void wake(void *event)
{
	eventfd_write((int)event_get_fd(event), 1);
}

static void *thread_attach(void *loop, struct ibv_context *ctx)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct event *event = event_new(loop, fd, EV_READ | EV_PERSIST, on_told, NULL);

	if (!event)
		return NULL;
	event_add(event, NULL);
	dedicated_thread(ctx, wake, event);
	return event;
}

/* ---- Ours, and the loop --------------------------------------------------------------------- */

static void *ours_attach(void *loop, struct ibv_context *ctx)
{
	return mlx5vfio_libevent_attach(loop, ctx);
}

static void ours_detach(void *attached)
{
	mlx5vfio_detach(attached);
}

static void *loop_new(void)
{
	return event_base_new();
}

static void loop_run(void *loop)
{
	event_base_dispatch(loop);
}

static void loop_stop(void *loop)
{
	event_base_loopbreak(loop);
}

static void loop_turn(void *loop)
{
	event_base_loop(loop, EVLOOP_NONBLOCK);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; timeout=400 seconds=20 */
/* The conformance scenarios with a program that polls by itself: ops NULL. */
#include <mlx5vfio/core.h>

#include "conformance/suite.h"
#include "conformance/tiny_loop.h"
#include "support/support.h"

/* The device's fd and those of its event queues, a source each. */
#define MAX_FDS 3

/* What mlx5vfio_pollfds() and mlx5vfio_timeout_ms() say is asked anew before each poll. */
static void set_fd(struct tiny_source *source, int i)
{
	const struct mlx5vfio *dev = source->arg;
	struct pollfd pollfds[MAX_FDS];
	int n = mlx5vfio_pollfds(dev, pollfds, MAX_FDS);

	ck_assert_int_le(n, MAX_FDS);
	ck_assert_int_eq(mlx5vfio_pollfds(dev, NULL, 0), n);
	ck_assert(i >= n || pollfds[i].events == POLLIN);
	source->fd = i < n ? pollfds[i].fd : -1;
}

static void refresh(struct tiny_source *source)
{
	int timeout_ms = mlx5vfio_timeout_ms(source->arg);

	set_fd(source, 0);
	source->due_ms = timeout_ms < 0 ? TINY_NEVER : support_now_ms() + timeout_ms;
}

static void refresh_second(struct tiny_source *source)
{
	set_fd(source, 1);
}

static void refresh_third(struct tiny_source *source)
{
	set_fd(source, 2);
}

static void on_ready(struct tiny_source *source, int revents)
{
	mlx5vfio_process(source->arg, source->fd, revents);
	if (!source->dead)
		source->refresh(source);
}

static void on_due(struct tiny_source *source)
{
	mlx5vfio_process(source->arg, -1, 0);
	if (!source->dead)
		refresh(source);
}

static void add_source(struct tiny_loop *loop, struct mlx5vfio *dev,
		       void (*refresh_it)(struct tiny_source *source))
{
	struct tiny_source *source = tiny_add(loop);

	ck_assert_ptr_nonnull(source);
	source->arg = dev;
	source->refresh = refresh_it;
	source->on_ready = on_ready;
	source->on_due = on_due;
	refresh_it(source);
}

static struct mlx5vfio *attach(void *loop, struct ibv_context *ctx)
{
	struct mlx5vfio *dev = mlx5vfio_attach(ctx, NULL, NULL);

	if (!dev)
		return NULL;
	add_source(loop, dev, refresh);
	add_source(loop, dev, refresh_second);
	add_source(loop, dev, refresh_third);
	return dev;
}

/* dev is gone when mlx5vfio_detach() returns, or when the handler does that called it. */
static void drop(void *loop, struct mlx5vfio *dev)
{
	struct tiny_loop *tiny = loop;

	for (struct tiny_source *source = tiny->sources; source; source = source->next)
		if (source->arg == dev)
			tiny_remove(source);
}

static const struct loop_driver by_hand = {
	.name = "poll",
	.no_unref = "the program decides when its own loop ends",
	.no_null_loop = "there is no loop to hand over",
	.create = tiny_driver_create,
	.destroy = tiny_driver_destroy,
	.wreck = tiny_driver_wreck,
	.attach = attach,
	.drop = drop,
	.turn = tiny_driver_turn,
	.run = tiny_driver_run,
	.watch = tiny_driver_watch,
	.unwatch = tiny_driver_stop,
	.start_timer = tiny_driver_start_timer,
	.stop_timer = tiny_driver_stop,
};

int main(void)
{
	static const struct loop_driver *const drivers[] = { &by_hand };

	return suite_run(drivers, 1);
}

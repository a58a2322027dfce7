/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_health_thread CALL: device 0 in a loop on the main thread, then CALL for it on another one. A
 * debug build aborts with a line, which comes on standard output; status 77 says that this is none.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mlx5vfio/eq.h>

#include "support/support.h"

#define INTERVAL_MS 20

static void set_interval(struct mlx5vfio *dev)
{
	mlx5vfio_set_interval(dev, INTERVAL_MS);
}

static void set_guard(struct mlx5vfio *dev)
{
	mlx5vfio_set_guard(dev, true);
}

static void process(struct mlx5vfio *dev)
{
	mlx5vfio_process(dev, -1, 0);
}

static void close_it(struct mlx5vfio *dev)
{
	mlx5vfio_close(dev);
}

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	(void)eq;
	(void)event;
	(void)arg;
}

static void eq_open(struct mlx5vfio *dev)
{
	static const struct mlx5vfio_eq_attr attr = { .budget = 1 };

	mlx5vfio_eq_open(dev, &attr, on_event, NULL);
}

static const struct call {
	const char *name;
	void (*make)(struct mlx5vfio *dev);
} calls[] = {
	{ "set_interval", set_interval }, { "set_guard", set_guard },
	{ "process", process },           { "close", close_it },
	{ "detach", mlx5vfio_detach },    { "eq_open", eq_open },
};

struct errand {
	void (*make)(struct mlx5vfio *dev);
	struct mlx5vfio *dev;
};

static void *run_errand(void *arg)
{
	const struct errand *errand = arg;

	errand->make(errand->dev);
	return NULL;
}

static void on_another_thread(void (*make)(struct mlx5vfio *dev), struct mlx5vfio *dev)
{
	struct errand errand = { .make = make, .dev = dev };
	pthread_t thread;

	support_require(!pthread_create(&thread, NULL, run_errand, &errand), "no thread");
	pthread_join(thread, NULL);
}

static void check(const struct call *call)
{
	struct mlx5vfio *dev = mlx5vfio_attach(support_open(0), NULL, NULL);

	support_require(dev != NULL, "cannot attach");
	/* A device may be set up before the thread of its loop is there. */
	on_another_thread(set_interval, dev);
	mlx5vfio_process(dev, -1, 0);
	dup2(STDOUT_FILENO, STDERR_FILENO);
	on_another_thread(call->make, dev);
	printf("not noticed\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned i;

#ifndef MLX5VFIO_DEBUG
	return 77;
#endif
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (argc == 2 && !strcmp(argv[1], calls[i].name))
			check(&calls[i]);
	return 0;
}

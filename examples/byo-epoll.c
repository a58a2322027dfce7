/* SPDX-License-Identifier: BSD-2-Clause */
/* A device in an epoll loop of the program's own, by the operations in byo-epoll.h. */
#include <infiniband/verbs.h>
#include <stdio.h>

#include "byo-epoll.h"

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *pci)
{
	printf("%s: %s%s\n", (char *)pci, mlx5vfio_fault_str(health->fault),
	       health->warning ? ", with a warning" : "");
	if (health->fault && mlx5vfio_close(dev))
		mlx5vfio_detach(dev); /* no thread to be had: the end of the process closes it */
}

static int attach(struct host *host, struct ibv_context *ctx)
{
	static const struct mlx5vfio_loop_ops ops = {
		.name = "epoll", .watch = host_watch, .timer = host_timer, .release = host_release
	};

	host->epoll = epoll_create1(EPOLL_CLOEXEC);
	host->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (host->epoll < 0 || host->timer < 0 || host_watch(host, host->timer, EPOLLIN))
		return -1;
	host->dev = mlx5vfio_attach(ctx, &ops, host);
	return host->dev ? 0 : -1;
}

int main(int argc, char **argv)
{
	static const struct mlx5vfio_handlers handlers = { .health = on_health };
	char why[512] = "usage: byo-epoll PCI-NAME";
	struct ibv_context *ctx = argc == 2 ? mlx5vfio_open(argv[1], 0, why, sizeof(why)) : NULL;
	int loop = epoll_create1(EPOLL_CLOEXEC); /* the program's own loop */
	struct epoll_event event = { .events = EPOLLIN };
	struct host host = { 0 };

	if (!ctx)
		return fprintf(stderr, "%s\n", why), 1;
	if (attach(&host, ctx) || epoll_ctl(loop, EPOLL_CTL_ADD, host.epoll, &event))
		return perror("cannot attach"), 1;
	mlx5vfio_set_handlers(host.dev, &handlers, argv[1]);
	while (host.dev) {
		int n = epoll_wait(loop, &event, 1, -1);

		if (n < 0 ? errno != EINTR : host_turn(&host) < 0)
			return perror("epoll"), 1;
	}
	printf("%s: gone\n", argv[1]);
	return 0;
}

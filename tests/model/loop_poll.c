/* SPDX-License-Identifier: BSD-2-Clause */
/* No loop library: the program polls by itself. */
#include <poll.h>
#include <stdlib.h>

#include <mlx5vfio/core.h>

#include "loop.h"
#include "support/support.h"

enum {
	POLL_DEVICES = 256,
	POLL_FDS = 8, /* of one device */
};

struct poll_host {
	struct mlx5vfio *devs[POLL_DEVICES];
};

static void *poll_create(void)
{
	struct poll_host *host = calloc(1, sizeof(*host));

	support_require(host != NULL, "no loop");
	return host;
}

static void poll_wreck(void *loop)
{
	free(loop);
}

static bool poll_destroy(void *loop)
{
	struct poll_host *host = loop;
	bool clean = true;

	for (int i = 0; i < POLL_DEVICES; i++)
		clean = clean && !host->devs[i];
	free(host);
	return clean;
}

static struct mlx5vfio *poll_attach(void *loop, struct ibv_context *ctx)
{
	struct mlx5vfio *dev = mlx5vfio_attach(ctx, NULL, NULL);
	struct poll_host *host = loop;
	int i = 0;

	while (dev && host->devs[i])
		support_require(++i < POLL_DEVICES, "too many devices");
	if (dev)
		host->devs[i] = dev;
	return dev;
}

static void poll_drop(void *loop, const struct mlx5vfio *dev)
{
	struct poll_host *host = loop;

	for (int i = 0; i < POLL_DEVICES; i++)
		if (host->devs[i] == dev)
			host->devs[i] = NULL;
}

struct poll_set {
	struct pollfd fds[POLL_DEVICES * POLL_FDS];
	int owner[POLL_DEVICES * POLL_FDS];
	nfds_t count;
	int timeout_ms;
};

static void collect(const struct poll_host *host, struct poll_set *set)
{
	for (int i = 0; i < POLL_DEVICES; i++) {
		int timeout_ms, n;

		if (!host->devs[i])
			continue;
		n = mlx5vfio_pollfds(host->devs[i], set->fds + set->count, POLL_FDS);
		support_require(n <= POLL_FDS, "%d fds of one device", n);
		while (n--)
			set->owner[set->count++] = i;
		timeout_ms = mlx5vfio_timeout_ms(host->devs[i]);
		if (timeout_ms >= 0 && timeout_ms < set->timeout_ms)
			set->timeout_ms = timeout_ms;
	}
}

/* A device that was detached meanwhile has left its place, and another one may have taken it. */
static void pass_on(const struct poll_host *host, struct mlx5vfio *dev, int owner,
		    const struct pollfd *fd)
{
	if (dev && host->devs[owner] == dev && fd->revents)
		mlx5vfio_process(dev, fd->fd, fd->revents);
}

static void poll_turn(void *loop, int max_ms)
{
	struct poll_set set = { .timeout_ms = max_ms };
	struct mlx5vfio *devs[POLL_DEVICES];
	struct poll_host *host = loop;

	collect(host, &set);
	poll(set.fds, set.count, set.timeout_ms);
	for (int i = 0; i < POLL_DEVICES; i++)
		devs[i] = host->devs[i];
	for (nfds_t i = 0; i < set.count; i++)
		pass_on(host, devs[set.owner[i]], set.owner[i], &set.fds[i]);
	for (int i = 0; i < POLL_DEVICES; i++)
		if (host->devs[i] && !mlx5vfio_timeout_ms(host->devs[i]))
			mlx5vfio_process(host->devs[i], -1, 0);
}

static const struct loop tested_loop = {
	.name = "poll",
	.create = poll_create,
	.destroy = poll_destroy,
	.wreck = poll_wreck,
	.attach = poll_attach,
	.drop = poll_drop,
	.turn = poll_turn,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* A device in a plain poll() loop: mlx5vfio says what to wait for, the program waits. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <mlx5vfio/core.h>
#include <stdio.h>
#include <string.h>

#define MAX_FDS 8

static bool over; /* .detached was called: the device is gone */

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *pci)
{
	printf("%s: %s%s\n", (char *)pci, mlx5vfio_fault_str(health->fault),
	       health->warning ? ", with a warning" : "");
	if (health->fault && mlx5vfio_close(dev))
		mlx5vfio_detach(dev); /* no thread to be had: the end of the process closes it */
}

static void on_detached(void *pci)
{
	printf("%s: gone\n", (char *)pci);
	over = true;
}

/* Every call may run a handler, and so end the device. */
static int turn(struct mlx5vfio *dev)
{
	struct pollfd fds[MAX_FDS];
	int i, n = mlx5vfio_pollfds(dev, fds, MAX_FDS);

	if (n > MAX_FDS)
		return errno = ENOBUFS, -1;
	if (poll(fds, (nfds_t)n, mlx5vfio_timeout_ms(dev)) < 0)
		return errno == EINTR ? 0 : -1;
	for (i = 0; i < n && !over; i++)
		if (fds[i].revents)
			mlx5vfio_process(dev, fds[i].fd, fds[i].revents);
	if (!over && mlx5vfio_timeout_ms(dev) == 0)
		mlx5vfio_process(dev, -1, 0);
	return 0;
}

int main(int argc, char **argv)
{
	const struct mlx5vfio_handlers handlers = { .health = on_health, .detached = on_detached };
	char why[512] = "usage: byo-poll PCI-NAME";
	struct ibv_context *ctx = argc == 2 ? mlx5vfio_open(argv[1], 0, why, sizeof(why)) : NULL;
	struct mlx5vfio *dev = ctx ? mlx5vfio_attach(ctx, NULL, NULL) : NULL;

	if (!dev)
		return fprintf(stderr, "%s\n", ctx ? strerror(errno) : why), 1;
	mlx5vfio_set_handlers(dev, &handlers, argv[1]);
	while (!over)
		if (turn(dev))
			return perror("poll"), 1;
	return 0;
}

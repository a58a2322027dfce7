/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of opening, giving back and closing share: a loop that is nothing but poll(). */
#ifndef TESTS_TEST_OPEN_H
#define TESTS_TEST_OPEN_H

#include <time.h>

#include <mlx5vfio/core.h>

#include "support/support.h"

#define ALL_FEATURES \
	(MLX5VFIO_FEATURE_GUARD | MLX5VFIO_FEATURE_REMOVAL | MLX5VFIO_FEATURE_PCI_ERROR)

/* Simulated device number dev by mlx5vfio_open(); ends the program if that fails. */
static inline struct ibv_context *test_open(unsigned dev)
{
	char why[256];
	struct ibv_context *ctx = mlx5vfio_open(support_pci_name(dev), 0, why, sizeof(why));

	support_require(ctx != NULL, "cannot open device %u: %s", dev, why);
	return ctx;
}

/* The same, attached to no loop. */
static inline struct mlx5vfio *test_attach(unsigned dev, const struct mlx5vfio_handlers *handlers,
					   void *arg)
{
	struct mlx5vfio *attached = mlx5vfio_attach(test_open(dev), NULL, NULL);

	support_require(attached != NULL, "cannot attach device %u", dev);
	mlx5vfio_set_handlers(attached, handlers, arg);
	return attached;
}

/* Waits for dev, most_ms at most, and processes what is there. dev may be gone afterwards. */
static inline void test_turn(struct mlx5vfio *dev, int most_ms)
{
	struct pollfd fd = { .fd = -1 };
	int fds = mlx5vfio_pollfds(dev, &fd, 1);
	int ms = mlx5vfio_timeout_ms(dev);

	if (ms < 0 || ms > most_ms)
		ms = most_ms;
	if (poll(&fd, (nfds_t)fds, ms) > 0)
		mlx5vfio_process(dev, fd.fd, fd.revents);
	else
		mlx5vfio_process(dev, -1, 0);
}

/* True when no more fds are in use, soon: a close's thread ends a little after the loop is told. */
static inline bool test_no_more_fds(int fds)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int64_t late = support_now_ms() + 10000;

	while (support_open_fds() > fds && support_now_ms() < late)
		nanosleep(&pause, NULL);
	return support_open_fds() <= fds;
}

#endif

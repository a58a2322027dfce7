/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_open_quiet: a program without handlers whose device the kernel asks back many times over. Prints
 * what the library says, and at its end that the device lives.
 */
#include <stdio.h>
#include <unistd.h>

#include "test_open.h"

int main(void)
{
	struct mlx5vfio *dev = test_attach(0, NULL, NULL);
	struct mlx5vfio_stats stats = { 0 };
	struct mlx5vfio_health health;

	dup2(STDOUT_FILENO, STDERR_FILENO);
	mlx5vfio_set_interval(dev, 10);
	support_sim("remove-request 0 every 5ms");
	while (stats.ticks < 30) {
		test_turn(dev, 1000);
		mlx5vfio_get_stats(dev, &stats, sizeof(stats));
	}
	support_require(!mlx5vfio_get_health(dev, &health), "no health");
	printf("fault %d, warning %d, errors %d\n", health.fault, health.warning,
	       (int)stats.errors);
	return 0;
}

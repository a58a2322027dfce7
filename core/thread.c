/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls from a wrong thread: caught in a debug build, a data race in any other. */
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "thread.h"

#ifdef MLX5VFIO_DEBUG

void thread_is_loop(struct mlx5vfio *dev)
{
	thread_check(dev);
	dev->thread = pthread_self();
	dev->thread_known = true;
}

void thread_check(const struct mlx5vfio *dev)
{
	if (!dev->thread_known || pthread_equal(dev->thread, pthread_self()))
		return;
	fputs("mlx5vfio: a device is used from another thread than its loop's\n", stderr);
	abort();
}

#endif

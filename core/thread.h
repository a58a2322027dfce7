/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All calls about a device are made on its loop's thread. A build with -DMLX5VFIO_DEBUG ends the
 * process when one is not; any other build does not look.
 */
#ifndef CORE_THREAD_H
#define CORE_THREAD_H

struct mlx5vfio;

#ifdef MLX5VFIO_DEBUG

/* The loop calls: from now on this is the device's thread. */
void thread_is_loop(struct mlx5vfio *dev);

/* The program calls. Before the loop has run it may be any thread. */
void thread_check(const struct mlx5vfio *dev);

#else

static inline void thread_is_loop(struct mlx5vfio *dev)
{
	(void)dev;
}

static inline void thread_check(const struct mlx5vfio *dev)
{
	(void)dev;
}

#endif

#endif

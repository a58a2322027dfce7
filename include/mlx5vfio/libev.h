/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5vfio on libev (4). Link with the pkg-config package mlx5vfio-libev.
 *
 * libev's shared library exports functions of libevent's under the same names (event_add and
 * others): the two must never be in one process.
 */
#ifndef MLX5VFIO_LIBEV_H
#define MLX5VFIO_LIBEV_H

#include <mlx5vfio/core.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ev_loop;

/*
 * Puts ctx into loop. All is set before this returns; the first event is handled on the loop's next
 * turn. The device keeps ev_run() from returning until mlx5vfio_detach() or mlx5vfio_unref().
 *
 * On the thread that runs loop, or before it runs. Errors: as mlx5vfio_attach(), and EINVAL for a
 * NULL loop.
 *
 * libev lets go at once: .detached comes from inside mlx5vfio_detach(), or when the handler that
 * called it returns. libev itself never fails to watch: it abort()s when memory runs out, unless
 * the program has set an allocator (ev_set_allocator).
 */
MLX5VFIO_API struct mlx5vfio *mlx5vfio_libev_attach(struct ev_loop *loop, struct ibv_context *ctx);

#ifdef __cplusplus
}
#endif

#endif

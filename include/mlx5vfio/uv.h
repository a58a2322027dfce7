/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5vfio on libuv (1.x). Link with the pkg-config package mlx5vfio-uv. */
#ifndef MLX5VFIO_UV_H
#define MLX5VFIO_UV_H

#include <mlx5vfio/core.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uv_loop_s;

/*
 * Puts ctx into loop. All is set before this returns; the first event is handled on the loop's next
 * turn. The device keeps uv_run() from returning until mlx5vfio_detach() or mlx5vfio_unref().
 *
 * On the loop's thread, or before the loop runs. Errors: as mlx5vfio_attach(), and EINVAL for a
 * NULL loop, EEXIST when the loop polls the same fd already (a uv_poll_t of the program's own).
 *
 * Detach before a uv_walk() that closes all handles: libuv aborts when a handle is closed twice.
 *
 * libuv lets go of handles asynchronously: after a detach (and after a failed attach) one more turn
 * of the loop is needed before uv_loop_close() returns 0. .detached comes on that turn.
 */
MLX5VFIO_API struct mlx5vfio *mlx5vfio_uv_attach(struct uv_loop_s *loop, struct ibv_context *ctx);

#ifdef __cplusplus
}
#endif

#endif

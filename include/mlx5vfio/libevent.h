/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5vfio on libevent (2.1). Link with the pkg-config package mlx5vfio-libevent. */
#ifndef MLX5VFIO_LIBEVENT_H
#define MLX5VFIO_LIBEVENT_H

#include <mlx5vfio/core.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;

/*
 * Puts ctx into base. All is set before this returns; the first event is handled on the loop's next
 * turn. The device keeps event_base_dispatch() from returning until mlx5vfio_detach(); libevent has
 * no way to make it not do so, mlx5vfio_unref() gives -ENOTSUP.
 *
 * On the thread that runs base, or before it runs. Errors: as mlx5vfio_attach(), and EINVAL for a
 * NULL base.
 *
 * libevent lets go at once: .detached comes from inside mlx5vfio_detach(), or when the handler
 * that called it returns. Events run at the base's default priority.
 */
MLX5VFIO_API struct mlx5vfio *mlx5vfio_libevent_attach(struct event_base *base,
						       struct ibv_context *ctx);

#ifdef __cplusplus
}
#endif

#endif

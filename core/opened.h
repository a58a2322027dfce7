/* SPDX-License-Identifier: BSD-2-Clause */
/* What mlx5vfio_open() found out about a ctx, until it is attached. */
#ifndef CORE_OPENED_H
#define CORE_OPENED_H

#include <stdbool.h>

#include "vfio.h"

struct ibv_context;

/*
 * Remembers a ctx and takes the notices over. When memory is short it is as if it had not been
 * opened here.
 */
void opened_add(struct ibv_context *ctx, int events_fd, struct vfio_notices notices);

/*
 * Was this ctx opened by mlx5vfio_open() and not attached since? Then it is forgotten here and the
 * notices are the caller's; else they are -1.
 */
bool opened_take(struct ibv_context *ctx, int events_fd, struct vfio_notices *notices);

#endif

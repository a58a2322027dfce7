/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands between the core and libmlx5: counts the calls of mlx5dv_vfio_process_events(), and lets
 * some of them fail, for failures that last longer than the simulator can make them last.
 */
#ifndef CONFORMANCE_LIBMLX5_H
#define CONFORMANCE_LIBMLX5_H

#include <infiniband/mlx5dv.h>

/*
 * The next times calls for ctx (NULL: any) return ret with errno error; times -1: until
 * libmlx5_heal().
 */
void libmlx5_fail(struct ibv_context *ctx, int ret, int error, int times);

void libmlx5_heal(void);

/* How many calls were made in the whole program. */
unsigned libmlx5_calls(void);

/* Has seen() told after each call what it returned, as a negative errno or 0; NULL ends that. */
void libmlx5_watch(void (*seen)(const struct ibv_context *ctx, int error));

#endif

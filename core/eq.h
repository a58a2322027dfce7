/* SPDX-License-Identifier: BSD-2-Clause */
/* The event queues of a device, as its other files see them. */
#ifndef CORE_EQ_H
#define CORE_EQ_H

#include <poll.h>
#include <stdbool.h>

struct mlx5vfio;
struct verbs_eq;

/* Is this the fd of one of the device's queues? Then it is processed. */
bool eq_process(struct mlx5vfio *dev, int fd, int revents);

/*
 * The tick: serves queues whose interrupt got lost or whose fd the loop cannot watch, and finds
 * those that were overrun without a trace in them.
 */
void eq_tick(struct mlx5vfio *dev);

/* Tells the loop that no queue is to be watched any more. */
void eq_unwatch_all(struct mlx5vfio *dev);

/* Closes what is still open, before the device is detached. */
void eq_close_all(struct mlx5vfio *dev);

/* Closes it without a command: the device's side is returned, linked, for somebody to destroy. */
struct verbs_eq *eq_hand_over(struct mlx5vfio *dev);

/* The same when the loop is gone and must not be touched. */
void eq_forget_all(struct mlx5vfio *dev);

/* Writes the pollfds of the queues, as mlx5vfio_pollfds() does; returns how many there are. */
int eq_pollfds(const struct mlx5vfio *dev, struct pollfd *fds, int n);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which devices are attached, in the whole process: loops may live on different threads, and a ctx
 * attached to two of them would be processed twice at once.
 */
#include <errno.h>
#include <pthread.h>

#include "device.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mlx5vfio *registry_head;

/* A shared fd number means that the other ctx was closed without a detach: its watcher must not get
 * ours. */
int registry_add(struct mlx5vfio *dev)
{
	struct mlx5vfio *other;

	pthread_mutex_lock(&registry_lock);
	for (other = registry_head; other; other = other->next)
		if (other->ctx == dev->ctx || other->fd == dev->fd)
			break;
	if (other && other->ctx != dev->ctx)
		atomic_store(&other->fd_taken, true);
	if (!other) {
		dev->next = registry_head;
		registry_head = dev;
	}
	pthread_mutex_unlock(&registry_lock);
	return other ? -EBUSY : 0;
}

void registry_remove(struct mlx5vfio *dev)
{
	struct mlx5vfio **link;

	pthread_mutex_lock(&registry_lock);
	for (link = &registry_head; *link; link = &(*link)->next) {
		if (*link == dev) {
			*link = dev->next;
			break;
		}
	}
	pthread_mutex_unlock(&registry_lock);
}

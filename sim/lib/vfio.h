/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VFIO's part of the kernel: containers with their DMA mappings, groups, and the system calls on
 * device fds. Called with the engine's lock held; errors are negative errnos.
 */
#ifndef SIM_VFIO_H
#define SIM_VFIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct object;

struct dma_map {
	uint64_t iova, size;
	uint8_t *memory;
	uint32_t pages_held; /* how many pages in it the firmware holds */
};

struct container {
	unsigned refs; /* its fd, and each group in it */
	unsigned groups;
	bool iommu_set;
	struct dma_map *maps; /* ordered by iova */
	size_t count, room;
	uint64_t mapped; /* bytes */
};

struct container *container_new(void);
void container_put(struct container *container);
int container_ioctl(struct container *container, unsigned long request, void *arg);

/* The DMA half. */
int iommu_get_info(void *arg);
int iommu_map(struct container *container, void *arg);
int iommu_unmap(struct container *container, void *arg);
struct dma_map *iommu_find(struct container *container, uint64_t iova);

/* Memory behind length bytes at iova, or NULL when not all of it is mapped by one mapping. */
void *iommu_memory(struct container *container, uint64_t iova, size_t length);

int group_ioctl(struct device *dev, unsigned long request, void *arg);
int device_ioctl(struct device *dev, unsigned long request, void *arg);
void device_irqs_clear(struct device *dev);

/* Signals an eventfd; -1 is allowed. */
void eventfd_trigger(int fd);

/* The fd of object goes away; open: it still exists during the call. */
void vfio_release(struct object *object, bool open);

/* Which devices share the container: calls visit for each one that is open. */
void container_visit(struct container *container, void (*visit)(struct device *, void *),
		     void *arg);

#endif

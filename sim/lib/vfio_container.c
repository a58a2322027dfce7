/* SPDX-License-Identifier: BSD-2-Clause */
/* Containers and groups: who holds whom, and their system calls. */
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <strings.h>
#include "device.h"
#include "object.h"
#include "real.h"
#include "tree_faults.h"
#include "vfio.h"

struct container *container_new(void)
{
	struct container *container = calloc(1, sizeof(*container));

	if (container)
		container->refs = 1;
	return container;
}

void container_put(struct container *container)
{
	if (--container->refs)
		return;
	free(container->maps);
	free(container);
}

void container_visit(struct container *container, void (*visit)(struct device *, void *), void *arg)
{
	for (struct device *dev = devices_begin(); dev < devices_end(); dev++)
		if (dev->container == container)
			visit(dev, arg);
}

static int set_iommu(struct container *container, unsigned long type)
{
	if (!container->groups || container->iommu_set)
		return -EINVAL;
	if (type != VFIO_TYPE1_IOMMU && type != VFIO_TYPE1v2_IOMMU)
		return -ENODEV;
	container->iommu_set = true;
	return 0;
}

static int check_extension(unsigned long extension)
{
	return extension == VFIO_TYPE1_IOMMU || extension == VFIO_TYPE1v2_IOMMU ||
	       extension == VFIO_UNMAP_ALL;
}

int container_ioctl(struct container *container, unsigned long request, void *arg)
{
	switch (request) {
	case VFIO_GET_API_VERSION:
		return VFIO_API_VERSION;
	case VFIO_CHECK_EXTENSION:
		return check_extension((unsigned long)(uintptr_t)arg);
	case VFIO_SET_IOMMU:
		return set_iommu(container, (unsigned long)(uintptr_t)arg);
	}
	if (!container->iommu_set)
		return -EINVAL;
	switch (request) {
	case VFIO_IOMMU_GET_INFO:
		return arg ? iommu_get_info(arg) : -EFAULT;
	case VFIO_IOMMU_MAP_DMA:
		return arg ? iommu_map(container, arg) : -EFAULT;
	case VFIO_IOMMU_UNMAP_DMA:
		return arg ? iommu_unmap(container, arg) : -EFAULT;
	default:
		return -ENOTTY;
	}
}

static int group_attach(struct device *dev, const int *fd)
{
	struct object *object = fd ? object_find(*fd) : NULL;

	if (!fd)
		return -EFAULT;
	if (dev->container)
		return -EINVAL;
	if (!object)
		return fcntl(*fd, F_GETFD) < 0 ? -EBADF : -EINVAL;
	if (object->kind != OBJECT_CONTAINER)
		return -EINVAL;
	if (!tree_group_viable(dev))
		return -EPERM;
	dev->container = object->container;
	dev->container->refs++;
	dev->container->groups++;
	return 0;
}

static void group_detach(struct device *dev)
{
	struct container *container = dev->container;

	if (!container)
		return;
	dev->container = NULL;
	/* With its last group a container loses its IOMMU and every mapping. */
	if (!--container->groups) {
		container->count = 0;
		container->mapped = 0;
		container->iommu_set = false;
	}
	container_put(container);
}

static int group_status(const struct device *dev, struct vfio_group_status *status)
{
	if (!status)
		return -EFAULT;
	if (status->argsz < sizeof(*status))
		return -EINVAL;
	status->flags = 0;
	if (dev->container || tree_group_viable(dev))
		status->flags |= VFIO_GROUP_FLAGS_VIABLE;
	if (dev->container)
		status->flags |= VFIO_GROUP_FLAGS_CONTAINER_SET;
	return 0;
}

static int group_device(struct device *dev, const char *name)
{
	int fd, error;

	if (!name)
		return -EFAULT;
	if (!dev->container || !dev->container->iommu_set)
		return -EINVAL;
	if (strcasecmp(name, dev->name))
		return -ENODEV;
	if (dev->open)
		return -EBUSY;
	fd = object_open_device(dev);
	if (fd < 0)
		return -errno;
	error = device_open(dev, fd);
	if (!error)
		return fd;
	object_drop(object_find(fd));
	real()->close(fd);
	return error;
}

int group_ioctl(struct device *dev, unsigned long request, void *arg)
{
	switch (request) {
	case VFIO_GROUP_GET_STATUS:
		return group_status(dev, arg);
	case VFIO_GROUP_SET_CONTAINER:
		return group_attach(dev, arg);
	case VFIO_GROUP_UNSET_CONTAINER:
		if (!dev->container)
			return -EINVAL;
		if (dev->open)
			return -EBUSY;
		group_detach(dev);
		return 0;
	case VFIO_GROUP_GET_DEVICE_FD:
		return group_device(dev, arg);
	default:
		return -ENOTTY;
	}
}

static void group_release(struct object *object, bool open)
{
	struct device *dev = object->device;

	dev->group_fd = -1;
	if (!dev->open) {
		group_detach(dev);
		return;
	}
	/* The device keeps its group, and so the group stays busy. */
	if (open)
		dev->lock_fd = object_duplicate_high(object->fd);
}

static void device_release(struct device *dev)
{
	device_close(dev);
	if (dev->group_fd >= 0)
		return;
	group_detach(dev);
	if (dev->lock_fd >= 0)
		real()->close(dev->lock_fd);
	dev->lock_fd = -1;
}

void vfio_release(struct object *object, bool open)
{
	switch (object->kind) {
	case OBJECT_CONTAINER:
		container_put(object->container);
		break;
	case OBJECT_GROUP:
		group_release(object, open);
		break;
	case OBJECT_DEVICE:
		device_release(object->device);
		break;
	case OBJECT_INTERNAL:
		break;
	}
}

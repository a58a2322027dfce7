/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls on a device fd: what it is made of, and its interrupts. */
#include <errno.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "config_space.h"
#include "device.h"
#include "object.h"
#include "real.h"
#include "vfio.h"

static int get_info(struct vfio_device_info *info)
{
	if (info->argsz < offsetof(struct vfio_device_info, num_irqs) + 4)
		return -EINVAL;
	info->flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
	info->num_regions = VFIO_PCI_NUM_REGIONS;
	info->num_irqs = VFIO_PCI_NUM_IRQS;
	return 0;
}

static int get_region_info(const struct device *dev, struct vfio_region_info *info)
{
	const uint32_t access = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;

	if (info->argsz < sizeof(*info) || info->index >= VFIO_PCI_VGA_REGION_INDEX)
		return -EINVAL;
	info->offset = (uint64_t)config_space_region_offset(info->index);
	info->size = 0;
	info->flags = 0;
	info->cap_offset = 0;
	if (info->index == VFIO_PCI_BAR0_REGION_INDEX) {
		info->offset = (uint64_t)config_space_bar_offset(dev);
		info->size = SIM_BAR_SIZE;
		info->flags = access | VFIO_REGION_INFO_FLAG_MMAP;
	} else if (info->index == VFIO_PCI_CONFIG_REGION_INDEX) {
		info->size = CONFIG_SIZE;
		info->flags = access;
	}
	return 0;
}

static uint32_t irq_count(uint32_t index)
{
	switch (index) {
	case VFIO_PCI_MSIX_IRQ_INDEX:
		return MSIX_VECTORS;
	case VFIO_PCI_ERR_IRQ_INDEX:
	case VFIO_PCI_REQ_IRQ_INDEX:
		return 1;
	default:
		return 0;
	}
}

static int get_irq_info(struct vfio_irq_info *info)
{
	if (info->argsz < sizeof(*info) || info->index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	info->count = irq_count(info->index);
	info->flags = VFIO_IRQ_INFO_EVENTFD;
	if (info->index == VFIO_PCI_INTX_IRQ_INDEX)
		info->flags |= VFIO_IRQ_INFO_MASKABLE | VFIO_IRQ_INFO_AUTOMASKED;
	else
		info->flags |= VFIO_IRQ_INFO_NORESIZE;
	return 0;
}

static void replace_fd(int *slot, int fd)
{
	if (*slot >= 0)
		object_internal_close(*slot);
	*slot = fd;
}

/* Duplicates an eventfd of the program, which closes its own; -1 stays -1. */
static int take_eventfd(int fd, int *taken)
{
	char link[64], target[32];
	ssize_t len;

	*taken = -1;
	if (fd == -1)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = real()->readlink(link, target, sizeof(target));
	if (len < 0)
		return -EBADF;
	if (len < 20 || strncmp(target, "anon_inode:[eventfd]", 20))
		return -EINVAL;
	fd = object_duplicate_high(fd);
	if (fd < 0)
		return -errno;
	object_guard(fd);
	*taken = fd;
	return 0;
}

void eventfd_trigger(int fd)
{
	uint64_t one = 1;

	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return; /* full, so readable already */
}

static int set_eventfds(int *slots, uint32_t count, const uint8_t *data)
{
	for (uint32_t i = 0; i < count; i++) {
		int fd, taken, error;

		memcpy(&fd, data + i * sizeof(fd), sizeof(fd));
		error = take_eventfd(fd, &taken);
		if (error)
			return error;
		replace_fd(&slots[i], taken);
	}
	return 0;
}

static int set_msix(struct device *dev, const struct vfio_irq_set *set)
{
	uint32_t type = set->flags & VFIO_IRQ_SET_DATA_TYPE_MASK;

	if (!set->count && type == VFIO_IRQ_SET_DATA_NONE) {
		for (unsigned i = 0; i < MSIX_VECTORS; i++)
			replace_fd(&dev->msix[i], -1);
		dev->msix_on = false;
		return 0;
	}
	if (type == VFIO_IRQ_SET_DATA_EVENTFD) {
		dev->msix_on = true;
		return set_eventfds(&dev->msix[set->start], set->count, set->data);
	}
	if (!dev->msix_on)
		return -EINVAL;
	for (uint32_t i = 0; i < set->count; i++)
		if (type == VFIO_IRQ_SET_DATA_NONE || set->data[i])
			eventfd_trigger(dev->msix[set->start + i]);
	return 0;
}

static int set_single(int *slot, const struct vfio_irq_set *set)
{
	uint32_t type = set->flags & VFIO_IRQ_SET_DATA_TYPE_MASK;

	if (type == VFIO_IRQ_SET_DATA_EVENTFD)
		return set_eventfds(slot, set->count, set->data);
	if (type == VFIO_IRQ_SET_DATA_NONE && !set->count)
		replace_fd(slot, -1);
	else if (type == VFIO_IRQ_SET_DATA_NONE || set->data[0])
		eventfd_trigger(*slot);
	return 0;
}

static size_t data_size(uint32_t flags)
{
	switch (flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
	case VFIO_IRQ_SET_DATA_BOOL:
		return 1;
	case VFIO_IRQ_SET_DATA_EVENTFD:
		return sizeof(int32_t);
	default:
		return 0;
	}
}

/* One kind of data and one action, no bit that is not known. */
static bool irq_flags_valid(uint32_t flags)
{
	uint32_t data = flags & VFIO_IRQ_SET_DATA_TYPE_MASK;
	uint32_t action = flags & VFIO_IRQ_SET_ACTION_TYPE_MASK;

	return data && !(data & (data - 1)) && action && !(action & (action - 1)) &&
	       flags == (data | action);
}

static int set_irqs(struct device *dev, const struct vfio_irq_set *set)
{
	uint32_t most = set->index < VFIO_PCI_NUM_IRQS ? irq_count(set->index) : 0;
	size_t unit = data_size(set->flags);

	if (set->argsz < sizeof(*set) || set->index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	if (!irq_flags_valid(set->flags))
		return -EINVAL;
	if (set->start >= most || set->count > most - set->start)
		return -EINVAL;
	if (set->argsz - sizeof(*set) < set->count * unit || (unit && !set->count))
		return -EINVAL;
	if ((set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) != VFIO_IRQ_SET_ACTION_TRIGGER)
		return -ENOTTY;
	if (set->index == VFIO_PCI_MSIX_IRQ_INDEX)
		return set_msix(dev, set);
	return set_single(
		set->index == VFIO_PCI_ERR_IRQ_INDEX ? &dev->error_irq : &dev->request_irq, set);
}

void device_irqs_clear(struct device *dev)
{
	for (unsigned i = 0; i < MSIX_VECTORS; i++)
		replace_fd(&dev->msix[i], -1);
	replace_fd(&dev->error_irq, -1);
	replace_fd(&dev->request_irq, -1);
}

int device_ioctl(struct device *dev, unsigned long request, void *arg)
{
	if (request == VFIO_DEVICE_RESET) {
		device_reset(dev);
		return 0;
	}
	if (!arg)
		return -EFAULT;
	switch (request) {
	case VFIO_DEVICE_GET_INFO:
		return get_info(arg);
	case VFIO_DEVICE_GET_REGION_INFO:
		return get_region_info(dev, arg);
	case VFIO_DEVICE_GET_IRQ_INFO:
		return get_irq_info(arg);
	case VFIO_DEVICE_SET_IRQS:
		return set_irqs(dev, arg);
	default:
		return -ENOTTY;
	}
}

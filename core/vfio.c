/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file descriptors that libmlx5 opened for a device and keeps to itself. They are found among
 * those of the process by what they are, never by their order, so that other threads may open and
 * close what they like meanwhile.
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "pci.h"
#include "vfio.h"

#define DEVICE_LINK "anon_inode:[vfio-device]"

/* Where vfio-pci maps a region into the device fd (VFIO_PCI_OFFSET_SHIFT in the kernel). */
#define REGION_OFFSET(index) ((off_t)(index) << 40)

typedef bool (*match_fn)(int fd, const char *link, const void *wanted);

/* The first fd of the process that matches, -1 if none does. */
static int find_fd(match_fn match, const void *wanted)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int found = -1;

	if (!dir)
		return -1;
	while (found < 0 && (entry = readdir(dir))) {
		char path[64], link[256];
		int fd = atoi(entry->d_name);
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, link, sizeof(link) - 1);
		if (length <= 0)
			continue;
		link[length] = '\0';
		if (match(fd, link, wanted))
			found = fd;
	}
	closedir(dir);
	return found;
}

static bool is_path(int fd, const char *link, const void *path)
{
	(void)fd;
	return !strcmp(link, path);
}

/* The bus address of BAR0 as the device's configuration space has it; 0 if it cannot be read. */
static uint64_t config_bar0(int device_fd)
{
	uint32_t words[2];
	off_t at = REGION_OFFSET(VFIO_PCI_CONFIG_REGION_INDEX) + PCI_BASE_ADDRESS_0;
	uint32_t low, high;

	if (pread(device_fd, words, sizeof(words), at) != (ssize_t)sizeof(words))
		return 0;
	low = le32toh(words[0]);
	high = low & PCI_BASE_ADDRESS_MEM_TYPE_64 ? le32toh(words[1]) : 0;
	return (uint64_t)high << 32 | (low & (uint32_t)PCI_BASE_ADDRESS_MEM_MASK);
}

static bool is_device_at(int fd, const char *link, const void *bar0)
{
	return !strcmp(link, DEVICE_LINK) && config_bar0(fd) == *(const uint64_t *)bar0;
}

/* The same address as the kernel has it: where the two disagree the device fd is not found. */
static uint64_t sysfs_bar0(const char *pci_name)
{
	char path[64], line[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource", pci_name);
	pci_read_line(path, line, sizeof(line));
	return strtoull(line, NULL, 16);
}

/* A child that inherits the group's fd keeps the device busy after its parent is gone. */
static void close_group_on_exec(int group)
{
	char path[32];
	int fd, flags;

	snprintf(path, sizeof(path), "/dev/vfio/%d", group);
	fd = find_fd(is_path, path);
	flags = fd < 0 ? -1 : fcntl(fd, F_GETFD);
	if (flags >= 0)
		fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

static int set_trigger(int device_fd, uint32_t index, int32_t event_fd)
{
	union {
		struct vfio_irq_set set;
		char room[sizeof(struct vfio_irq_set) + sizeof(int32_t)];
	} irq = { 0 };

	irq.set.argsz = sizeof(irq.room);
	irq.set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	irq.set.index = index;
	irq.set.count = 1;
	memcpy(irq.room + sizeof(irq.set), &event_fd, sizeof(event_fd));
	return ioctl(device_fd, VFIO_DEVICE_SET_IRQS, &irq);
}

/* The kernel keeps the eventfd for as long as the device is open: nothing has to be undone. */
static int register_notice(int device_fd, uint32_t index)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0 || !set_trigger(device_fd, index, fd))
		return fd;
	close(fd);
	return -1;
}

struct vfio_notices vfio_adopt(const char *pci_name)
{
	struct vfio_notices notices = { -1, -1 };
	uint64_t bar0 = sysfs_bar0(pci_name);
	int device_fd;

	close_group_on_exec(pci_iommu_group(pci_name));
	device_fd = bar0 ? find_fd(is_device_at, &bar0) : -1;
	if (device_fd < 0)
		return notices;
	notices.removal = register_notice(device_fd, VFIO_PCI_REQ_IRQ_INDEX);
	notices.error = register_notice(device_fd, VFIO_PCI_ERR_IRQ_INDEX);
	return notices;
}

void vfio_notices_close(struct vfio_notices *notices)
{
	if (notices->removal >= 0)
		close(notices->removal);
	if (notices->error >= 0)
		close(notices->error);
	*notices = (struct vfio_notices){ -1, -1 };
}

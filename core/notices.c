/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What VFIO lets the kernel tell: that it wants the device back, and that a PCI error was
 * signalled. The two eventfds are read at each tick; they are not worth a watcher of the loop's.
 */
#include <stdio.h>
#include <sys/eventfd.h>

#include "device.h"

/* PCI errors are signalled for harmless ones too, and before a fatal one shows in the registers. */
#define SUSPECT_MS 5000

static bool arrived(int fd)
{
	eventfd_t count;

	return fd >= 0 && !eventfd_read(fd, &count);
}

/* Once: the kernel repeats the request until the device is closed. */
static void tell_removal(struct mlx5vfio *dev)
{
	if (dev->removal_told)
		return;
	dev->removal_told = true;
	if (dev->handlers.removal)
		dev->handlers.removal(dev, dev->arg);
	else
		fputs("mlx5vfio: the kernel asks for a device back and waits for its close\n",
		      stderr);
}

/* Also when something else than a tick has found a fault, which may be of this. */
void notices_read_error(struct mlx5vfio *dev)
{
	if (arrived(dev->notices.error))
		dev->suspect_until = clock_ms() + SUSPECT_MS;
}

/* May run .removal, and so end in a detached device. */
void notices_read(struct mlx5vfio *dev)
{
	if (dev->suspect_until && clock_ms() >= dev->suspect_until)
		dev->suspect_until = 0;
	notices_read_error(dev);
	if (arrived(dev->notices.removal))
		tell_removal(dev);
}

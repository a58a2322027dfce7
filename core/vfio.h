/* SPDX-License-Identifier: BSD-2-Clause */
/* The file descriptors that libmlx5 opened for a device and keeps to itself. */
#ifndef CORE_VFIO_H
#define CORE_VFIO_H

/* Two interrupts of VFIO that libmlx5 leaves alone, as eventfds; -1 where one could not be had. */
struct vfio_notices {
	int removal; /* the kernel asks for the device back */
	int error;   /* a PCI error was signalled */
};

/*
 * For the device that has just been opened under this PCI name (in lower case): makes its group fd
 * close-on-exec and registers the two interrupts.
 */
struct vfio_notices vfio_adopt(const char *pci_name);

void vfio_notices_close(struct vfio_notices *notices);

#endif

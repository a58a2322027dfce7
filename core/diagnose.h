/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a PCI device cannot be opened through VFIO, in words. Calls no libmlx5 and no event loop. */
#ifndef CORE_DIAGNOSE_H
#define CORE_DIAGNOSE_H

#include <stddef.h>

/*
 * Finds out why pci_name cannot be opened and writes one sentence, without a full stop, that can
 * follow "cannot open 0000:b0:00.0: ". open_error is the errno, of either sign, that an attempt to
 * open it ended with. Returns a negative errno, never 0:
 *
 * -EINVAL     the name is malformed
 * -ENOENT     there is no such PCI device
 * -ENODEV     it is not an mlx5 device
 * -ENXIO      it is not set up for VFIO: driver, IOMMU group, device files, group not viable
 * -EACCES     no permission
 * -EBUSY      in use, or its firmware is still initializing
 * -ENOMEM     memory could not be mapped
 * -ETIMEDOUT  its firmware does not answer
 * otherwise   open_error itself
 *
 * With open_error 0 nothing was tried: then it looks without opening anything, and returns 0 and
 * the empty sentence if it finds nothing in the way.
 */
int diagnose_pci(const char *pci_name, int open_error, char *why, size_t size);

#endif

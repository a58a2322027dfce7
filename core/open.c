/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening a device, with the reason in words when it fails. */
#include <errno.h>

#include <mlx5vfio/core.h>

#include "diagnose.h"
#include "opened.h"
#include "pci.h"
#include "verbs.h"
#include "vfio.h"

/*
 * The attempt comes before the diagnosis: what sysfs says of an unusual system must never refuse a
 * device that libmlx5 can open. Only the name is judged first, because libmlx5 reads no further
 * than it understands, and VFIO knows the lower-case form alone.
 */
struct ibv_context *mlx5vfio_open(const char *pci_name, unsigned flags, char *why, size_t why_size)
{
	struct ibv_context *ctx = NULL;
	char name[PCI_NAME_SIZE];
	int error = -EINVAL;

	if (pci_name_normalise(pci_name, name))
		error = verbs_open(name, flags, &ctx);
	if (error == 0) {
		if (why && why_size > 0)
			why[0] = '\0';
		opened_add(ctx, verbs_events_fd(ctx), vfio_adopt(name));
		return ctx;
	}
	errno = -diagnose_pci(pci_name, error, why, why_size);
	return NULL;
}

int mlx5vfio_check(const char *pci_name, char *why, size_t why_size)
{
	return diagnose_pci(pci_name, 0, why, why_size);
}

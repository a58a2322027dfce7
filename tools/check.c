/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5vfio check: whether devices can be opened, and why not, without opening them. */
#include <stdio.h>

#include <mlx5vfio/core.h>

#include "commands.h"

enum status check(char *const *pci_names, int count)
{
	enum status status = STATUS_OK;
	char why[512];
	int i;

	for (i = 0; i < count; i++) {
		bool free_to_open = mlx5vfio_check(pci_names[i], why, sizeof(why)) == 0;

		printf("%s: %s\n", pci_names[i], free_to_open ? "can be opened" : why);
		if (!free_to_open)
			status = STATUS_CANNOT_OPEN;
	}
	return status;
}

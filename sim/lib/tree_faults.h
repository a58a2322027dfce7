/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a device cannot be opened, as far as files say it: changes to the launcher's file tree, seen by
 * every process that runs in it. Called with the engine's lock held; errors are negative errnos.
 */
#ifndef SIM_TREE_FAULTS_H
#define SIM_TREE_FAULTS_H

#include <stdbool.h>

struct device;

/* The device's driver, NULL for none. Without one of VFIO's its group has no file in /dev/vfio. */
int tree_bind(const struct device *dev, const char *driver);

/* No IOMMU: neither a group nor its file. */
int tree_drop_group(const struct device *dev);

/* The group's file was not passed into the container that the program runs in. */
int tree_drop_group_file(const struct device *dev);

/* A second function of the card is in the same group and bound to driver. */
int tree_add_member(const struct device *dev, const char *driver);

/* May all members of the group be given to a program? */
bool tree_group_viable(const struct device *dev);

int tree_permit_group(const struct device *dev, bool permit);
int tree_permit_container(bool permit);

/* As it was when the simulator started. */
int tree_restore(const struct device *dev);

#endif

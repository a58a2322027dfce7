/* SPDX-License-Identifier: BSD-2-Clause */
/* The file behind a device fd: regions at VFIO's offsets, and the PCI configuration space. */
#ifndef SIM_CONFIG_SPACE_H
#define SIM_CONFIG_SPACE_H

#include <sys/types.h>

struct device;

enum {
	CONFIG_SIZE = 4096,
};

/* Gives fd its size and its configuration space. Returns 0, or -1 with errno. */
int config_space_create(const struct device *dev, int fd);
off_t config_space_bar_offset(const struct device *dev);
off_t config_space_region_offset(unsigned region);

#endif

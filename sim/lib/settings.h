/* SPDX-License-Identifier: BSD-2-Clause */
/* What the command mlx5vfio-sim told us through the environment. */
#ifndef SIM_SETTINGS_H
#define SIM_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct settings {
	bool active; /* false: not started by mlx5vfio-sim, everything passes through */
	bool report;
	bool maps_offset;
	bool infiniband; /* the port is one, not Ethernet */
	unsigned devices;
	uint64_t seed;
	char dir[256];
	char socket[108];
	char faults[PATH_MAX];
};

const struct settings *settings(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and addresses of the simulated devices, and the environment variables by which the command
 * mlx5vfio-sim speaks to the library that it puts into the program.
 */
#ifndef SIM_NAMING_H
#define SIM_NAMING_H

#include <stdint.h>
#include <stdio.h>

#define SIM_ENV_DIR         "MLX5VFIO_SIM_DIR"
#define SIM_ENV_DEVICES     "MLX5VFIO_SIM_DEVICES"
#define SIM_ENV_FAULTS      "MLX5VFIO_SIM_FAULTS"
#define SIM_ENV_SEED        "MLX5VFIO_SIM_SEED"
#define SIM_ENV_REPORT      "MLX5VFIO_SIM_REPORT"
#define SIM_ENV_SOCKET      "MLX5VFIO_SIM_SOCKET"
#define SIM_ENV_MAPS_OFFSET "MLX5VFIO_SIM_MAPS_OFFSET"
#define SIM_ENV_INFINIBAND  "MLX5VFIO_SIM_INFINIBAND"

#define SIM_DIR_PREFIX      "mlx5vfio-sim."

/* The device that is there but is no mlx5. */
#define SIM_OTHER_NAME "0000:af:00.0"

enum {
	SIM_MAX_DEVICES = 1024,
	SIM_FIRST_BUS = 0xb0,
	SIM_FIRST_GROUP = 10,
	SIM_OTHER_GROUP = 9,
	SIM_NAME_SIZE = 16,
	SIM_VENDOR = 0x15b3,
	SIM_DEVICE = 0x101d,
	SIM_CLASS = 0x020000,
	SIM_BAR_SIZE = 32 * 1024 * 1024,
};

static inline void sim_device_name(unsigned index, char name[SIM_NAME_SIZE])
{
	unsigned bus = SIM_FIRST_BUS + index;

	snprintf(name, SIM_NAME_SIZE, "%04x:%02x:00.0", (bus >> 8) & 0xffff, bus & 0xff);
}

/* The bus address of BAR0, as in the configuration space and in sysfs. */
static inline uint64_t sim_bar_address(unsigned index)
{
	return UINT64_C(0x2000000000) + (uint64_t)index * SIM_BAR_SIZE;
}

#endif

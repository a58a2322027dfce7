/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the simulator share: the registers of an open device, devices opened by hand
 * through VFIO, and libmlx5's event loop in its plainest form. Register and command layouts are
 * those of rdma-core's mlx5_ifc.h.
 */
#ifndef TESTS_TEST_SIM_H
#define TESTS_TEST_SIM_H

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/bytes.h"
#include "support/support.h"

enum {
	SIM_PAGE = 4096,
	SIM_BAR = 32 * 1024 * 1024,
	SIM_PATIENCE = 10000, /* ms in which anything that shall happen has happened */

	SIM_REG_CMDIF = 0x4,
	SIM_REG_CMDQ_HIGH = 0x10,
	SIM_REG_CMDQ_LOW = 0x14,
	SIM_REG_DOORBELL = 0x18,
	SIM_REG_INITIALIZING = 0x1fc,
	SIM_REG_FW_VERSION = 0x230,
	SIM_REG_RECOVERY = 0x238,
	SIM_REG_SYNDROME = 0x23c, /* bits 23:16, the extended one in 15:0 */
	SIM_REG_COUNTER = 0x1010,
};

static inline uint32_t sim_read(const uint8_t *bar, size_t offset)
{
	return be32toh(*(const volatile uint32_t *)(const void *)(bar + offset));
}

static inline void sim_write(uint8_t *bar, size_t offset, uint32_t value)
{
	*(volatile uint32_t *)(void *)(bar + offset) = htobe32(value);
}

/* BAR0 of a device that libmlx5 has open, and the number of its one UAR page. */
static inline uint8_t *sim_bar_of(struct ibv_context *ctx, uint32_t *page)
{
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	uint8_t *bar;

	ck_assert_ptr_nonnull(uar);
	bar = (uint8_t *)uar->base_addr - (size_t)uar->page_id * SIM_PAGE;
	if (page)
		*page = uar->page_id;
	mlx5dv_devx_free_uar(uar);
	return bar;
}

static inline uint64_t sim_violations(unsigned dev)
{
	return support_stats(dev).violations;
}

/* Closes a device and looks at what is left: no mapping, and as many violations as were made. */
static inline void sim_close(struct ibv_context **ctx, unsigned dev, uint64_t violations)
{
	struct ibv_context *closed = *ctx;

	*ctx = NULL;
	ck_assert_int_eq(ibv_close_device(closed), 0);
	ck_assert_uint_eq(support_stats(dev).dma_maps, 0);
	ck_assert_uint_eq(sim_violations(dev), violations);
}

/* After a test that failed: the next one finds its device closed. */
static inline void sim_close_rest(struct ibv_context **ctx)
{
	if (*ctx)
		ibv_close_device(*ctx);
	*ctx = NULL;
}

static inline bool sim_readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, timeout_ms) == 1 && poll_fd.revents == POLLIN;
}

/* A turn of a plain event loop. */
static inline int sim_turn(struct ibv_context *ctx)
{
	sim_readable(mlx5dv_vfio_get_events_fd(ctx), 10);
	return mlx5dv_vfio_process_events(ctx);
}

/* Turns until the device has nothing more to do. Returns the last error, or 0. */
static inline int sim_turn_until_settled(struct ibv_context *ctx, unsigned dev)
{
	int64_t end = support_now_ms() + SIM_PATIENCE;
	int error = 0;

	while (mlx5vfio_sim_settle(dev, 0)) {
		int ret = sim_turn(ctx);

		if (ret)
			error = ret;
		ck_assert_msg(support_now_ms() < end, "the device does not settle");
	}
	return error;
}

/* A device as VFIO gives it, without libmlx5. */
struct sim_raw {
	int container, group, device;
	uint8_t *bar;
};

static inline int sim_open_group(unsigned dev)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/vfio/%u", 10 + dev);
	return open(path, O_RDWR | O_CLOEXEC);
}

static inline struct sim_raw sim_raw_open(unsigned dev)
{
	struct sim_raw raw = { .container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC),
			       .group = sim_open_group(dev) };

	ck_assert_int_ge(raw.container, 0);
	ck_assert_int_ge(raw.group, 0);
	ck_assert_int_eq(ioctl(raw.group, VFIO_GROUP_SET_CONTAINER, &raw.container), 0);
	ck_assert_int_eq(ioctl(raw.container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU), 0);
	raw.device = ioctl(raw.group, VFIO_GROUP_GET_DEVICE_FD, support_pci_name(dev));
	ck_assert_int_ge(raw.device, 0);
	raw.bar = mmap(NULL, SIM_BAR, PROT_READ | PROT_WRITE, MAP_SHARED, raw.device, 0);
	ck_assert_ptr_ne(raw.bar, MAP_FAILED);
	return raw;
}

static inline void sim_raw_close(struct sim_raw *raw)
{
	munmap(raw->bar, SIM_BAR);
	close(raw->device);
	close(raw->group);
	close(raw->container);
}

static inline int sim_map(int container, const void *memory, uint64_t iova, uint64_t size)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)memory,
		.iova = iova,
		.size = size,
	};

	return ioctl(container, VFIO_IOMMU_MAP_DMA, &map) ? -errno : 0;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA mappings by the rules of the kernel's type-1 v2 IOMMU driver. */
#include <errno.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "device.h"
#include "vfio.h"

enum {
	IOMMU_PAGE = 4096,
	MAX_MAPS = 65535,
	CHECKED_AT_ONCE = 1024,
};

/* As on x86: everything below 48 bits but the window of the interrupt messages. */
static const struct {
	uint64_t start, end;
} usable[] = {
	{ 0, 0xfedfffff },
	{ 0xfef00000, 0xffffffffffff },
};

enum {
	USABLE_COUNT = sizeof(usable) / sizeof(usable[0]),
};

enum {
	CAPABILITY_SIZE = sizeof(struct vfio_iommu_type1_info_cap_iova_range) +
			  USABLE_COUNT * sizeof(struct vfio_iova_range),
};

static void write_capability(struct vfio_iommu_type1_info_cap_iova_range *cap)
{
	memset(cap, 0, CAPABILITY_SIZE);
	cap->header.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE;
	cap->header.version = 1;
	cap->nr_iovas = USABLE_COUNT;
	for (unsigned i = 0; i < USABLE_COUNT; i++) {
		cap->iova_ranges[i].start = usable[i].start;
		cap->iova_ranges[i].end = usable[i].end;
	}
}

int iommu_get_info(void *arg)
{
	struct vfio_iommu_type1_info *info = arg;
	size_t needed = sizeof(*info) + CAPABILITY_SIZE;

	if (info->argsz < offsetof(struct vfio_iommu_type1_info, cap_offset))
		return -EINVAL;
	info->flags = VFIO_IOMMU_INFO_PGSIZES;
	info->iova_pgsizes = ~(uint64_t)(IOMMU_PAGE - 1);
	if (info->argsz < offsetof(struct vfio_iommu_type1_info, cap_offset) + 4)
		return 0;
	info->flags |= VFIO_IOMMU_INFO_CAPS;
	if (info->argsz < needed) {
		info->argsz = (uint32_t)needed;
		info->cap_offset = 0;
		return 0;
	}
	write_capability((void *)((uint8_t *)arg + sizeof(*info)));
	info->cap_offset = sizeof(*info);
	return 0;
}

/* The index of the first mapping that ends behind iova. */
static size_t position(const struct container *container, uint64_t iova)
{
	size_t low = 0, high = container->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct dma_map *map = &container->maps[middle];

		if (map->iova + (map->size - 1) < iova)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct dma_map *iommu_find(struct container *container, uint64_t iova)
{
	size_t i;

	if (!container)
		return NULL;
	i = position(container, iova);
	return i < container->count && container->maps[i].iova <= iova ? &container->maps[i] : NULL;
}

void *iommu_memory(struct container *container, uint64_t iova, size_t length)
{
	struct dma_map *map = iommu_find(container, iova);

	if (!map || iova - map->iova > map->size || length > map->size - (iova - map->iova))
		return NULL;
	return map->memory + (iova - map->iova);
}

static bool usable_range(uint64_t first, uint64_t last)
{
	for (unsigned i = 0; i < USABLE_COUNT; i++)
		if (first >= usable[i].start && last <= usable[i].end)
			return true;
	return false;
}

/* Pinning fails for addresses at which there is nothing. */
static bool memory_exists(uint64_t address, uint64_t size)
{
	unsigned char resident[CHECKED_AT_ONCE];

	while (size) {
		uint64_t part =
			size < sizeof(resident) * IOMMU_PAGE ? size : sizeof(resident) * IOMMU_PAGE;

		if (mincore((void *)(uintptr_t)address, part, resident))
			return false;
		address += part;
		size -= part;
	}
	return true;
}

static int check_map(struct container *container, const struct vfio_iommu_type1_dma_map *map)
{
	const uint32_t access = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	uint64_t last = map->iova + (map->size - 1);
	size_t at;

	if (map->argsz < sizeof(*map) || map->flags & ~access || !(map->flags & access))
		return -EINVAL;
	if (!map->size || (map->size | map->iova | map->vaddr) & (IOMMU_PAGE - 1))
		return -EINVAL;
	if (last < map->iova || map->vaddr + (map->size - 1) < map->vaddr)
		return -EINVAL;
	at = position(container, map->iova);
	if (at < container->count && container->maps[at].iova <= last)
		return -EEXIST;
	if (container->count == MAX_MAPS)
		return -ENOSPC;
	if (!usable_range(map->iova, last))
		return -EINVAL;
	return memory_exists(map->vaddr, map->size) ? 0 : -EFAULT;
}

struct bad_request {
	const char *what;
	uint64_t iova, size;
};

static void report_bad_request(struct device *dev, void *arg)
{
	const struct bad_request *bad = arg;

	violation(dev, "bad DMA %s: iova 0x%llx, size 0x%llx", bad->what,
		  (unsigned long long)bad->iova, (unsigned long long)bad->size);
}

/* A mistake of the program, told for each device in the container. */
static int refuse(struct container *container, struct bad_request bad, int error)
{
	container_visit(container, report_bad_request, &bad);
	return error;
}

static bool make_room(struct container *container)
{
	size_t room = container->room ? container->room * 2 : 64;
	struct dma_map *maps;

	if (container->count < container->room)
		return true;
	maps = realloc(container->maps, room * sizeof(*maps));
	if (!maps)
		return false;
	container->maps = maps;
	container->room = room;
	return true;
}

static void ask_map_fault(struct device *dev, void *arg)
{
	bool *fail = arg;

	if (!*fail && dev->faults.map_fail) {
		dev->faults.map_fail--;
		*fail = true;
	}
	if (dev->faults.memory_limited && dev->container->mapped > dev->faults.memory)
		*fail = true;
}

int iommu_map(struct container *container, void *arg)
{
	const struct vfio_iommu_type1_dma_map *asked = arg;
	int error = check_map(container, asked);
	bool fail = false;
	size_t at;

	if (error == -ENOSPC)
		return error;
	if (error)
		return refuse(container, (struct bad_request){ "map", asked->iova, asked->size },
			      error);
	container->mapped += asked->size;
	container_visit(container, ask_map_fault, &fail);
	if (fail || !make_room(container)) {
		container->mapped -= asked->size;
		return -ENOMEM;
	}
	at = position(container, asked->iova);
	memmove(&container->maps[at + 1], &container->maps[at],
		(container->count - at) * sizeof(*container->maps));
	container->maps[at] = (struct dma_map){
		.iova = asked->iova,
		.size = asked->size,
		.memory = (uint8_t *)(uintptr_t)asked->vaddr,
	};
	container->count++;
	return 0;
}

static void report_lost_pages(struct device *dev, void *arg)
{
	const struct dma_map *map = arg;

	if (dev->active)
		violation(dev, "%u pages of the firmware were unmapped with iova 0x%llx",
			  map->pages_held, (unsigned long long)map->iova);
}

static uint64_t remove_maps(struct container *container, size_t from, size_t to)
{
	uint64_t size = 0;

	for (size_t i = from; i < to; i++) {
		size += container->maps[i].size;
		if (container->maps[i].pages_held)
			container_visit(container, report_lost_pages, &container->maps[i]);
	}
	memmove(&container->maps[from], &container->maps[to],
		(container->count - to) * sizeof(*container->maps));
	container->count -= to - from;
	container->mapped -= size;
	return size;
}

/* Version 2 of the interface takes whole mappings only. */
static bool cuts_a_map(struct container *container, uint64_t first, uint64_t last)
{
	struct dma_map *map = iommu_find(container, first);

	if (map && map->iova != first)
		return true;
	map = iommu_find(container, last);
	return map && map->iova + (map->size - 1) != last;
}

static bool bad_unmap(struct container *container, const struct vfio_iommu_type1_dma_unmap *asked)
{
	uint64_t last = asked->iova + (asked->size - 1);

	return asked->flags || !asked->size || (asked->size | asked->iova) & (IOMMU_PAGE - 1) ||
	       last < asked->iova || cuts_a_map(container, asked->iova, last);
}

int iommu_unmap(struct container *container, void *arg)
{
	struct vfio_iommu_type1_dma_unmap *asked = arg;
	uint64_t last = asked->iova + (asked->size - 1);
	size_t from, to;

	if (asked->argsz < offsetof(struct vfio_iommu_type1_dma_unmap, size) + 8)
		return -EINVAL;
	if (asked->flags == VFIO_DMA_UNMAP_FLAG_ALL && !asked->iova && !asked->size) {
		asked->size = remove_maps(container, 0, container->count);
		return 0;
	}
	if (bad_unmap(container, asked))
		return refuse(container, (struct bad_request){ "unmap", asked->iova, asked->size },
			      -EINVAL);
	from = to = position(container, asked->iova);
	while (to < container->count && container->maps[to].iova <= last)
		to++;
	asked->size = remove_maps(container, from, to);
	return 0;
}

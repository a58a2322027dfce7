/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 2; valgrind */
/* The simulated VFIO answers as the kernel's does, also to mistakes; the bad ones are counted. */
#include <stdlib.h>
#include <sys/eventfd.h>

#include "test_sim.h"

enum {
	IOVA = 0x100000,
	MEMORY = 16 * SIM_PAGE,
	VECTORS = 64,
};

static struct sim_raw raw;
static uint8_t *memory;

static void set_up(void)
{
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	raw = sim_raw_open(0);
}

static void tear_down(void)
{
	sim_raw_close(&raw);
	munmap(memory, MEMORY);
}

static int raw_ioctl(int fd, unsigned long request, void *arg)
{
	int ret = ioctl(fd, request, arg);

	return ret < 0 ? -errno : ret;
}

static int map(uint64_t offset, uint64_t iova, uint64_t size)
{
	return sim_map(raw.container, memory + offset, iova, size);
}

/* Returns how much was unmapped. */
static int64_t unmap_flags(uint64_t iova, uint64_t size, uint32_t flags)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap), .flags = flags, .iova = iova, .size = size
	};
	int ret = raw_ioctl(raw.container, VFIO_IOMMU_UNMAP_DMA, &unmap);

	return ret ? ret : (int64_t)unmap.size;
}

static int64_t unmap(uint64_t iova, uint64_t size)
{
	return unmap_flags(iova, size, 0);
}

static void expect_violations(uint64_t count)
{
	ck_assert_uint_eq(sim_violations(0), count);
}

static void expect_maps(uint64_t count)
{
	ck_assert_uint_eq(support_stats(0).dma_maps, count);
}

START_TEST(overlapping_maps)
{
	ck_assert_int_eq(map(0, IOVA, 4 * SIM_PAGE), 0);
	ck_assert_int_eq(map(0, IOVA, 4 * SIM_PAGE), -EEXIST);
	ck_assert_int_eq(map(0, IOVA + SIM_PAGE, SIM_PAGE), -EEXIST);
	ck_assert_int_eq(map(0, IOVA + 3 * SIM_PAGE, 4 * SIM_PAGE), -EEXIST);
	ck_assert_int_eq(map(0, IOVA - SIM_PAGE, 2 * SIM_PAGE), -EEXIST);
	ck_assert_int_eq(map(0, IOVA - SIM_PAGE, 8 * SIM_PAGE), -EEXIST);
	expect_violations(5);
	/* Neighbours, and the same memory at two addresses, are no overlap. */
	ck_assert_int_eq(map(0, IOVA + 4 * SIM_PAGE, SIM_PAGE), 0);
	ck_assert_int_eq(map(0, IOVA - SIM_PAGE, SIM_PAGE), 0);
	expect_violations(5);
	expect_maps(3);
}
END_TEST

START_TEST(malformed_maps)
{
	struct vfio_iommu_type1_dma_map bad = {
		.argsz = sizeof(bad), .vaddr = (uintptr_t)memory, .iova = IOVA, .size = SIM_PAGE
	};

	ck_assert_int_eq(map(0, IOVA, 0), -EINVAL);
	ck_assert_int_eq(map(0, IOVA, SIM_PAGE - 1), -EINVAL);
	ck_assert_int_eq(map(0, IOVA + 8, SIM_PAGE), -EINVAL);
	ck_assert_int_eq(map(8, IOVA, SIM_PAGE), -EINVAL);
	ck_assert_int_eq(map(0, UINT64_MAX - SIM_PAGE + 1, 2 * SIM_PAGE), -EINVAL); /* wraps */
	ck_assert_int_eq(map(0, 0xfee00000, SIM_PAGE), -EINVAL); /* the window of MSI */
	ck_assert_int_eq(map(0, UINT64_C(1) << 48, SIM_PAGE), -EINVAL);
	ck_assert_int_eq(raw_ioctl(raw.container, VFIO_IOMMU_MAP_DMA, &bad), -EINVAL);
	bad.flags = 1 << 7 | VFIO_DMA_MAP_FLAG_READ;
	ck_assert_int_eq(raw_ioctl(raw.container, VFIO_IOMMU_MAP_DMA, &bad), -EINVAL);
	bad.flags = VFIO_DMA_MAP_FLAG_READ;
	bad.argsz--;
	ck_assert_int_eq(raw_ioctl(raw.container, VFIO_IOMMU_MAP_DMA, &bad), -EINVAL);
	expect_violations(10);
	expect_maps(0);
}
END_TEST

START_TEST(map_of_no_memory)
{
	ck_assert_int_eq(munmap(memory + SIM_PAGE, SIM_PAGE), 0);
	ck_assert_int_eq(map(0, IOVA, 3 * SIM_PAGE), -EFAULT);
	expect_violations(1);
	ck_assert_int_eq(map(0, IOVA, SIM_PAGE), 0);
	expect_violations(1);
}
END_TEST

START_TEST(map_that_fails_on_demand)
{
	support_sim("map-fail 0 2");
	ck_assert_int_eq(map(0, IOVA, SIM_PAGE), -ENOMEM);
	ck_assert_int_eq(map(0, IOVA, SIM_PAGE), -ENOMEM);
	ck_assert_int_eq(map(0, IOVA, SIM_PAGE), 0);
	support_sim("memlock 0 %d", 3 * SIM_PAGE);
	ck_assert_int_eq(map(0, 2 * IOVA, 3 * SIM_PAGE), -ENOMEM);
	ck_assert_int_eq(map(0, 2 * IOVA, 2 * SIM_PAGE), 0);
	ck_assert_int_eq(map(0, 3 * IOVA, SIM_PAGE), -ENOMEM);
	ck_assert_int_eq(unmap(IOVA, SIM_PAGE), SIM_PAGE);
	ck_assert_int_eq(map(0, 3 * IOVA, SIM_PAGE), 0);
	support_sim("memlock 0 off");
	ck_assert_int_eq(map(0, 4 * IOVA, SIM_PAGE), 0);
	expect_violations(0);
}
END_TEST

START_TEST(unmaps)
{
	ck_assert_int_eq(map(0, IOVA, 4 * SIM_PAGE), 0);
	ck_assert_int_eq(map(0, IOVA + 4 * SIM_PAGE, SIM_PAGE), 0);
	ck_assert_int_eq(unmap(IOVA, 2 * SIM_PAGE), -EINVAL); /* half of one */
	ck_assert_int_eq(unmap(IOVA + 2 * SIM_PAGE, 2 * SIM_PAGE), -EINVAL);
	ck_assert_int_eq(unmap(IOVA + 2 * SIM_PAGE, 3 * SIM_PAGE), -EINVAL);
	ck_assert_int_eq(unmap(IOVA, 0), -EINVAL);
	ck_assert_int_eq(unmap(IOVA + 8, SIM_PAGE), -EINVAL);
	ck_assert_int_eq(unmap(UINT64_MAX - SIM_PAGE + 1, 2 * SIM_PAGE), -EINVAL);
	ck_assert_int_eq(unmap_flags(IOVA, 4 * SIM_PAGE, 1 << 9), -EINVAL);
	expect_violations(7);
	expect_maps(2);
	/* Nothing is there: no error. Two at once, with room around them: fine. */
	ck_assert_int_eq(unmap(IOVA + 16 * SIM_PAGE, SIM_PAGE), 0);
	ck_assert_int_eq(unmap(IOVA - SIM_PAGE, 8 * SIM_PAGE), 5 * SIM_PAGE);
	expect_violations(7);
	expect_maps(0);
}
END_TEST

START_TEST(unmap_all)
{
	for (uint64_t i = 0; i < 5; i++)
		ck_assert_int_eq(map(0, IOVA + 2 * i * SIM_PAGE, SIM_PAGE), 0);
	ck_assert_int_eq(unmap_flags(IOVA, SIM_PAGE, VFIO_DMA_UNMAP_FLAG_ALL), -EINVAL);
	expect_maps(5);
	ck_assert_int_eq(unmap_flags(0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 5 * SIM_PAGE);
	expect_maps(0);
}
END_TEST

/* Many, in an order that makes the table move. */
START_TEST(many_maps)
{
	const uint64_t count = 1000;

	for (uint64_t i = 0; i < count; i++)
		ck_assert_int_eq(map(0, IOVA + i * 7 % count * SIM_PAGE, SIM_PAGE), 0);
	expect_maps(count);
	for (uint64_t i = 0; i < count; i++)
		ck_assert_int_eq(unmap(IOVA + i * 13 % count * SIM_PAGE, SIM_PAGE), SIM_PAGE);
	expect_maps(0);
	expect_violations(0);
}
END_TEST

START_TEST(iommu_info)
{
	struct {
		struct vfio_iommu_type1_info info;
		uint8_t room[256];
	} answer = { .info = { .argsz = sizeof(answer.info) } };
	struct vfio_info_cap_header *cap = (void *)answer.room;

	ck_assert_int_eq(raw_ioctl(raw.container, VFIO_IOMMU_GET_INFO, &answer), 0);
	ck_assert_uint_gt(answer.info.argsz, sizeof(answer.info));
	ck_assert_uint_le(answer.info.argsz, sizeof(answer));
	ck_assert_uint_eq(answer.info.cap_offset, 0);
	ck_assert_int_eq(raw_ioctl(raw.container, VFIO_IOMMU_GET_INFO, &answer), 0);
	ck_assert_uint_eq(answer.info.cap_offset, sizeof(answer.info));
	ck_assert_uint_eq(cap->id, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE);
	answer.info.argsz = 4;
	ck_assert_int_eq(raw_ioctl(raw.container, VFIO_IOMMU_GET_INFO, &answer), -EINVAL);
	ck_assert_int_eq(raw_ioctl(raw.container, VFIO_IOMMU_GET_INFO, NULL), -EFAULT);
}
END_TEST

START_TEST(containers)
{
	int container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	int group = sim_open_group(1), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int closed = dup(null);
	struct vfio_group_status status = { .argsz = sizeof(status) };

	close(closed);
	ck_assert_int_eq(raw_ioctl(container, VFIO_GET_API_VERSION, NULL), VFIO_API_VERSION);
	ck_assert_int_eq(ioctl(container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU), 1);
	ck_assert_int_eq(ioctl(container, VFIO_CHECK_EXTENSION, 77), 0);
	ck_assert_int_eq(sim_map(container, memory, IOVA, SIM_PAGE), -EINVAL); /* no IOMMU */
	ck_assert_int_eq(ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU), -1);
	ck_assert_int_eq(errno, EINVAL); /* no group */
	ck_assert_int_eq(raw_ioctl(container, 0xdead, NULL), -EINVAL);

	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_GET_STATUS, &status), 0);
	ck_assert_uint_eq(status.flags, VFIO_GROUP_FLAGS_VIABLE);
	ck_assert_int_eq(ioctl(group, VFIO_GROUP_GET_DEVICE_FD, support_pci_name(1)), -1);
	ck_assert_int_eq(errno, EINVAL); /* no container */
	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_UNSET_CONTAINER, NULL), -EINVAL);
	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_SET_CONTAINER, &closed), -EBADF);
	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_SET_CONTAINER, &null), -EINVAL);
	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_SET_CONTAINER, &group), -EINVAL);
	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_SET_CONTAINER, &container), 0);
	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_SET_CONTAINER, &container), -EINVAL);
	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_GET_STATUS, &status), 0);
	ck_assert_uint_eq(status.flags, VFIO_GROUP_FLAGS_VIABLE | VFIO_GROUP_FLAGS_CONTAINER_SET);
	status.argsz = 4;
	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_GET_STATUS, &status), -EINVAL);
	ck_assert_int_eq(ioctl(container, VFIO_SET_IOMMU, 77), -1);
	ck_assert_int_eq(errno, ENODEV);
	ck_assert_int_eq(ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU), 0);
	ck_assert_int_eq(ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(raw_ioctl(container, 0xdead, NULL), -ENOTTY);
	ck_assert_int_eq(raw_ioctl(group, 0xdead, NULL), -ENOTTY);
	ck_assert_int_eq(sim_map(container, memory, IOVA, SIM_PAGE), 0);
	ck_assert_int_eq(raw_ioctl(group, VFIO_GROUP_UNSET_CONTAINER, NULL), 0);
	ck_assert_int_eq(sim_map(container, memory, IOVA, SIM_PAGE), -EINVAL);
	close(null);
	close(group);
	close(container);
}
END_TEST

START_TEST(groups_are_exclusive)
{
	ck_assert_int_eq(sim_open_group(0), -1);
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_int_eq(ioctl(raw.group, VFIO_GROUP_GET_DEVICE_FD, support_pci_name(1)), -1);
	ck_assert_int_eq(errno, ENODEV); /* of another group */
	ck_assert_int_eq(ioctl(raw.group, VFIO_GROUP_GET_DEVICE_FD, "nonsense"), -1);
	ck_assert_int_eq(errno, ENODEV);
	ck_assert_int_eq(raw_ioctl(raw.group, VFIO_GROUP_UNSET_CONTAINER, NULL), -EBUSY);
	/* The device keeps its group when the group's fd is closed. */
	close(raw.group);
	ck_assert_int_eq(sim_open_group(0), -1);
	ck_assert_int_eq(errno, EBUSY);
	close(raw.device);
	raw.group = sim_open_group(0);
	ck_assert_int_ge(raw.group, 0);
	raw.device = open("/dev/null", O_RDONLY | O_CLOEXEC); /* for the end of the test */
}
END_TEST

static void expect_link(int fd, const char *target)
{
	char path[64], link[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert_int_gt(readlink(path, link, sizeof(link) - 1), 0);
	ck_assert_str_eq(link, target);
}

START_TEST(files_look_like_the_kernels)
{
	expect_link(raw.container, "/dev/vfio/vfio");
	expect_link(raw.group, "/dev/vfio/10");
	expect_link(raw.device, "anon_inode:[vfio-device]");
	ck_assert_int_eq(fcntl(raw.device, F_GETFD), FD_CLOEXEC);
}
END_TEST

static int region(uint32_t index, uint32_t argsz, struct vfio_region_info *info)
{
	*info = (struct vfio_region_info){ .argsz = argsz, .index = index };
	return raw_ioctl(raw.device, VFIO_DEVICE_GET_REGION_INFO, info);
}

START_TEST(region_info)
{
	const uint32_t access = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	struct vfio_region_info info;
	uint16_t vendor;

	ck_assert_int_eq(region(VFIO_PCI_BAR0_REGION_INDEX, sizeof(info), &info), 0);
	ck_assert_uint_eq(info.size, SIM_BAR);
	ck_assert_uint_eq(info.flags, access | VFIO_REGION_INFO_FLAG_MMAP);
	ck_assert_int_eq(region(VFIO_PCI_CONFIG_REGION_INDEX, sizeof(info), &info), 0);
	ck_assert_uint_eq(info.flags, access);
	ck_assert_int_eq(pread(raw.device, &vendor, 2, (off_t)info.offset), 2);
	ck_assert_uint_eq(le16toh(vendor), 0x15b3);
	ck_assert_int_eq(region(VFIO_PCI_BAR2_REGION_INDEX, sizeof(info), &info), 0);
	ck_assert_uint_eq(info.size, 0);
	ck_assert_int_eq(region(VFIO_PCI_VGA_REGION_INDEX, sizeof(info), &info), -EINVAL);
	ck_assert_int_eq(region(VFIO_PCI_NUM_REGIONS, sizeof(info), &info), -EINVAL);
	ck_assert_int_eq(region(VFIO_PCI_BAR0_REGION_INDEX, 8, &info), -EINVAL);
}
END_TEST

static int irq(uint32_t index, uint32_t argsz, struct vfio_irq_info *info)
{
	*info = (struct vfio_irq_info){ .argsz = argsz, .index = index };
	return raw_ioctl(raw.device, VFIO_DEVICE_GET_IRQ_INFO, info);
}

START_TEST(irq_info)
{
	const uint32_t fixed = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE;
	struct vfio_device_info device = { .argsz = sizeof(device) };
	struct vfio_irq_info info;

	ck_assert_int_eq(raw_ioctl(raw.device, VFIO_DEVICE_GET_INFO, &device), 0);
	ck_assert_uint_eq(device.num_irqs, VFIO_PCI_NUM_IRQS);
	ck_assert_uint_eq(device.flags, VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET);
	device.argsz = 4;
	ck_assert_int_eq(raw_ioctl(raw.device, VFIO_DEVICE_GET_INFO, &device), -EINVAL);
	ck_assert_int_eq(irq(VFIO_PCI_MSIX_IRQ_INDEX, sizeof(info), &info), 0);
	ck_assert_uint_eq(info.count, VECTORS);
	ck_assert_uint_eq(info.flags, fixed);
	for (uint32_t i = VFIO_PCI_ERR_IRQ_INDEX; i <= VFIO_PCI_REQ_IRQ_INDEX; i++) {
		ck_assert_int_eq(irq(i, sizeof(info), &info), 0);
		ck_assert_uint_eq(info.count, 1);
		ck_assert_uint_eq(info.flags, fixed);
	}
	ck_assert_int_eq(irq(VFIO_PCI_NUM_IRQS, sizeof(info), &info), -EINVAL);
	ck_assert_int_eq(irq(VFIO_PCI_MSIX_IRQ_INDEX, 4, &info), -EINVAL);
	ck_assert_int_eq(raw_ioctl(raw.device, 0xdead, &info), -ENOTTY);
	ck_assert_int_eq(raw_ioctl(raw.device, VFIO_DEVICE_GET_IRQ_INFO, NULL), -EFAULT);
}
END_TEST

/* SET_IRQS with eventfds, the first of which is fd and the rest absent. */
static int set_irqs(uint32_t index, uint32_t start, uint32_t count, int fd)
{
	union {
		struct vfio_irq_set set;
		uint8_t room[sizeof(struct vfio_irq_set) + (VECTORS + 1) * sizeof(int)];
	} request = { .set = { .argsz = (uint32_t)(sizeof(request.set) + count * sizeof(int)),
			       .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
			       .index = index,
			       .start = start,
			       .count = count } };

	memset(request.set.data, 0xff, count * sizeof(int));
	if (count)
		memcpy(request.set.data, &fd, sizeof(fd));
	return raw_ioctl(raw.device, VFIO_DEVICE_SET_IRQS, &request);
}

/* One without data: count 0 ends the interrupts, count 1 triggers one. */
static int set_irqs_flags(uint32_t index, uint32_t start, uint32_t count, uint32_t flags)
{
	struct vfio_irq_set set = {
		.argsz = sizeof(set), .flags = flags, .index = index, .start = start, .count = count
	};

	return raw_ioctl(raw.device, VFIO_DEVICE_SET_IRQS, &set);
}

static void drain(int fd)
{
	uint64_t count;

	ck_assert(sim_readable(fd, SIM_PATIENCE));
	ck_assert_int_eq(read(fd, &count, sizeof(count)), sizeof(count));
}

START_TEST(irqs)
{
	const uint32_t trigger = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
	const uint32_t index = VFIO_PCI_MSIX_IRQ_INDEX;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), null = open("/dev/null", O_RDONLY);

	ck_assert_int_eq(set_irqs_flags(index, 0, 1, trigger), -EINVAL); /* off */
	ck_assert_int_eq(set_irqs(index, 0, VECTORS, fd), 0);
	support_sim("spurious 0 0");
	drain(fd);
	ck_assert_int_eq(set_irqs_flags(index, 0, 1, trigger), 0);
	drain(fd);
	ck_assert_int_eq(set_irqs(index, 5, 1, fd), 0);
	support_sim("spurious 0 5");
	drain(fd);
	ck_assert_int_eq(set_irqs(index, 5, 1, -1), 0);
	support_sim("spurious 0 5");
	ck_assert(!sim_readable(fd, 0));
	ck_assert_int_eq(set_irqs(index, 0, VECTORS + 1, fd), -EINVAL);
	ck_assert_int_eq(set_irqs(index, VECTORS, 1, fd), -EINVAL);
	ck_assert_int_eq(set_irqs(index, UINT32_MAX, 2, fd), -EINVAL);
	ck_assert_int_eq(set_irqs(index, 0, 1, null), -EINVAL);
	ck_assert_int_eq(set_irqs(VFIO_PCI_NUM_IRQS, 0, 1, fd), -EINVAL);
	ck_assert_int_eq(set_irqs(VFIO_PCI_MSI_IRQ_INDEX, 0, 1, fd), -EINVAL); /* has none */
	ck_assert_int_eq(set_irqs_flags(index, 0, 1,
					VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER),
			 -EINVAL); /* no room for the eventfd */
	ck_assert_int_eq(
		set_irqs_flags(index, 0, 1, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK),
		-ENOTTY);
	ck_assert_int_eq(set_irqs_flags(index, 0, 1, trigger | VFIO_IRQ_SET_DATA_EVENTFD), -EINVAL);
	close(null);
	ck_assert_int_eq(set_irqs(index, 0, 1, null), -EBADF);
	ck_assert_int_eq(set_irqs_flags(index, 0, 0, trigger), 0); /* off again */
	support_sim("spurious 0 0");
	ck_assert(!sim_readable(fd, 0));
	close(fd);
}
END_TEST

START_TEST(irqs_of_the_kernel)
{
	int removal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int error = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int64_t end = support_now_ms() + SIM_PATIENCE;

	ck_assert_int_eq(set_irqs(VFIO_PCI_REQ_IRQ_INDEX, 0, 2, removal), -EINVAL);
	ck_assert_int_eq(set_irqs(VFIO_PCI_REQ_IRQ_INDEX, 0, 1, removal), 0);
	ck_assert_int_eq(set_irqs(VFIO_PCI_ERR_IRQ_INDEX, 0, 1, error), 0);
	support_sim("remove-request 0");
	drain(removal);
	ck_assert(!sim_readable(error, 0));
	support_sim("aer 0");
	drain(error);
	ck_assert(!sim_readable(removal, 0)); /* the kernel repeats itself after ten seconds */
	ck_assert_uint_eq(sim_read(raw.bar, SIM_REG_CMDIF) >> 16, 5);
	support_sim("remove-request 0 every 10ms");
	for (int i = 0; i < 3; i++)
		drain(removal);
	support_sim("aer 0 fatal 20ms");
	drain(error);
	while (sim_read(raw.bar, SIM_REG_CMDIF) != UINT32_MAX)
		ck_assert_int_lt(support_now_ms(), end);
	close(removal);
	close(error);
}
END_TEST

/* A reset by the program itself: registers as after an opening. */
START_TEST(reset)
{
	support_sim("fatal 0 7");
	sim_write(raw.bar, SIM_REG_CMDQ_HIGH, 0x1234);
	ck_assert_int_eq(raw_ioctl(raw.device, VFIO_DEVICE_RESET, NULL), 0);
	ck_assert_uint_eq(sim_read(raw.bar, SIM_REG_CMDQ_HIGH), 0);
	ck_assert_uint_eq(sim_read(raw.bar, SIM_REG_RECOVERY), 0);
	ck_assert_uint_eq(sim_read(raw.bar, SIM_REG_CMDQ_LOW), 0x56);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim vfio");
	TCase *tcase = tcase_create("raw");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, overlapping_maps);
	tcase_add_test(tcase, malformed_maps);
	tcase_add_test(tcase, map_of_no_memory);
	tcase_add_test(tcase, map_that_fails_on_demand);
	tcase_add_test(tcase, unmaps);
	tcase_add_test(tcase, unmap_all);
	tcase_add_test(tcase, many_maps);
	tcase_add_test(tcase, iommu_info);
	tcase_add_test(tcase, containers);
	tcase_add_test(tcase, groups_are_exclusive);
	tcase_add_test(tcase, files_look_like_the_kernels);
	tcase_add_test(tcase, region_info);
	tcase_add_test(tcase, irq_info);
	tcase_add_test(tcase, irqs);
	tcase_add_test(tcase, irqs_of_the_kernel);
	tcase_add_test(tcase, reset);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

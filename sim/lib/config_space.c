/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device fd is a sparse file laid out as VFIO lays out a device, so that read, write and mmap
 * are the kernel's own.
 */
#include <endian.h>
#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <string.h>
#include <unistd.h>
#include "config_space.h"
#include "device.h"
#include "settings.h"

enum {
	REGION_SHIFT = 40,
	CAPABILITY_AT = 0x60,
};

off_t config_space_region_offset(unsigned region)
{
	return (off_t)region << REGION_SHIFT;
}

/*
 * The offset of a mapping is what /proc/…/maps shows: zero on newer kernels, the bus address on
 * older ones. Nobody should depend on either, so both can be had.
 */
off_t config_space_bar_offset(const struct device *dev)
{
	return settings()->maps_offset ? (off_t)sim_bar_address(dev->index) : 0;
}

static void put_le16(uint8_t *at, uint16_t value)
{
	value = htole16(value);
	memcpy(at, &value, sizeof(value));
}

static void put_le32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

int config_space_create(const struct device *dev, int fd)
{
	off_t offset = config_space_region_offset(VFIO_PCI_CONFIG_REGION_INDEX);
	uint64_t bar = sim_bar_address(dev->index);
	uint8_t config[CONFIG_SIZE] = { 0 };

	put_le16(config + PCI_VENDOR_ID, SIM_VENDOR);
	put_le16(config + PCI_DEVICE_ID, SIM_DEVICE);
	put_le16(config + PCI_STATUS, PCI_STATUS_CAP_LIST);
	put_le32(config + PCI_CLASS_REVISION, SIM_CLASS << 8);
	put_le32(config + PCI_BASE_ADDRESS_0,
		 (uint32_t)bar | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	put_le32(config + PCI_BASE_ADDRESS_1, (uint32_t)(bar >> 32));
	config[PCI_CAPABILITY_LIST] = CAPABILITY_AT;
	config[CAPABILITY_AT] = PCI_CAP_ID_MSIX;
	put_le16(config + CAPABILITY_AT + PCI_MSIX_FLAGS, MSIX_VECTORS - 1);
	if (ftruncate(fd, offset + CONFIG_SIZE))
		return -1;
	if (pwrite(fd, config, sizeof(config), offset) != (ssize_t)sizeof(config))
		return -1;
	return 0;
}

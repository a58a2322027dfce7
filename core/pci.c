/* SPDX-License-Identifier: BSD-2-Clause */
/* What sysfs tells of a PCI device. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pci.h"

/* A device's directory, the longest file name (255) and what is between them. */
#define PATH_SIZE 320

static bool fits(char form, unsigned char c)
{
	switch (form) {
	case 'x':
		return isxdigit(c);
	case 'd':
		return c == '0' || c == '1';
	case 'f':
		return c >= '0' && c <= '7';
	default:
		return c == (unsigned char)form;
	}
}

bool pci_name_normalise(const char *pci_name, char name[PCI_NAME_SIZE])
{
	/* A bus has 32 slots of 8 functions. libmlx5 reads no more than four digits of the domain.
	 */
	static const char form[PCI_NAME_SIZE] = "xxxx:xx:dx.f";
	size_t i;

	name[0] = '\0';
	if (!pci_name || strlen(pci_name) != PCI_NAME_SIZE - 1)
		return false;
	for (i = 0; form[i]; i++) {
		if (!fits(form[i], (unsigned char)pci_name[i]))
			return false;
	}
	for (i = 0; i < PCI_NAME_SIZE; i++)
		name[i] = (char)tolower((unsigned char)pci_name[i]);
	return true;
}

static void pci_path(char *path, size_t size, const char *name, const char *file)
{
	snprintf(path, size, "/sys/bus/pci/devices/%s/%s", name, file);
}

bool pci_exists(const char *name)
{
	char path[PATH_SIZE];
	struct stat st;

	pci_path(path, sizeof(path), name, "");
	return stat(path, &st) == 0;
}

void pci_read_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = 0;

	if (fd >= 0) {
		len = read(fd, line, size - 1);
		close(fd);
	}
	line[len > 0 ? len : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

unsigned long pci_number(const char *name, const char *file)
{
	char path[PATH_SIZE], line[32];

	pci_path(path, sizeof(path), name, file);
	pci_read_line(path, line, sizeof(line));
	return strtoul(line, NULL, 16);
}

/* The last component of what a link of the device points to; the empty string if there is none. */
static void pci_link(const char *name, const char *link, char *last, size_t size)
{
	char path[PATH_SIZE], target[512];
	const char *slash;
	ssize_t len;

	pci_path(path, sizeof(path), name, link);
	len = readlink(path, target, sizeof(target) - 1);
	target[len > 0 ? len : 0] = '\0';
	slash = strrchr(target, '/');
	snprintf(last, size, "%.*s", (int)size - 1, slash ? slash + 1 : target);
}

void pci_driver(const char *name, char *driver, size_t size)
{
	pci_link(name, "driver", driver, size);
}

int pci_iommu_group(const char *name)
{
	char number[16];

	pci_link(name, "iommu_group", number, sizeof(number));
	return number[0] == '\0' ? -1 : atoi(number);
}

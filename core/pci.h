/* SPDX-License-Identifier: BSD-2-Clause */
/* What sysfs tells of a PCI device. The names given are normalised ones, but for the first call. */
#ifndef CORE_PCI_H
#define CORE_PCI_H

#include <stdbool.h>
#include <stddef.h>

/* "0000:b0:00.0" with its NUL. */
#define PCI_NAME_SIZE 13

/*
 * Copies a PCI name to name, hexadecimal digits in lower case. False if it does not have the form
 * 0000:b0:00.0 (also for NULL); name is then the empty string.
 */
bool pci_name_normalise(const char *pci_name, char name[PCI_NAME_SIZE]);

bool pci_exists(const char *name);

/* A file of the device that holds a hexadecimal number; 0 if it cannot be read. */
unsigned long pci_number(const char *name, const char *file);

/* The driver that the device is bound to; the empty string for none. */
void pci_driver(const char *name, char *driver, size_t size);

/* The number of its IOMMU group, -1 if it is in none. */
int pci_iommu_group(const char *name);

/* The first line of any file, without its newline; the empty string if it cannot be read. */
void pci_read_line(const char *path, char *line, size_t size);

#endif

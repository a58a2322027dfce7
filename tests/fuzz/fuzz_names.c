/* SPDX-License-Identifier: BSD-2-Clause */
/* PCI names as programs and people give them (core/pci.c). */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/pci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name becomes a part of a path: nothing but digits and the three separators may be in it. */
static void check(const char *name)
{
	char again[PCI_NAME_SIZE];

	if (strlen(name) != PCI_NAME_SIZE - 1 || strspn(name, "0123456789abcdef:.") != strlen(name))
		abort();
	if (!pci_name_normalise(name, again) || strcmp(name, again) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	char name[PCI_NAME_SIZE];

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (pci_name_normalise(text, name))
		check(name);
	else if (name[0])
		abort();
	free(text);
	return 0;
}

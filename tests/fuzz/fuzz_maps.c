/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of the process's map (core/maps.c), on lines that no kernel has written. */
#include <stdlib.h>
#include <string.h>

#include "core/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Somewhere in the line it must say "readable" and, three further on, "shared". */
static bool says_shared(const char *line)
{
	size_t length = strlen(line);

	for (size_t i = 0; i + 3 < length; i++)
		if (line[i] == 'r' && line[i + 3] == 's')
			return true;
	return false;
}

/* A line that matches has the form of one, and matches no other address. */
static void check_match(const char *line, uintptr_t start, size_t size)
{
	if (!maps_line_matches(line, start, size))
		return;
	if (!strchr(line, '-') || !says_shared(line) || maps_line_matches(line, start + 1, size))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	check_match(line, (uintptr_t)strtoull(line, NULL, 16), 0x2000);
	check_match(line, 0x7f0000000000, 1);
	free(line);
	return 0;
}

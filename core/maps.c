/* SPDX-License-Identifier: BSD-2-Clause */
/* What the process has mapped, as /proc/self/maps tells it. */
#include <stdio.h>
#include <stdlib.h>

#include "maps.h"

/*
 * Only the addresses and the permissions count. The offset column is the BAR's physical address on
 * some kernels and 0 on others, and the name differs as well.
 */
bool maps_line_matches(const char *line, uintptr_t start, size_t size)
{
	unsigned long long from, to;
	char permissions[5] = "";

	if (sscanf(line, "%llx-%llx %4s", &from, &to, permissions) != 3)
		return false;
	return from == start && to > from && to - from >= size && permissions[0] == 'r' &&
	       permissions[3] == 's';
}

bool maps_contains(uintptr_t start, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	if (!maps)
		return false;
	while (!found && getline(&line, &room, maps) > 0)
		found = maps_line_matches(line, start, size);
	free(line);
	fclose(maps);
	return found;
}

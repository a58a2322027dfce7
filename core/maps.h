/* SPDX-License-Identifier: BSD-2-Clause */
/* What the process has mapped, as /proc/self/maps tells it. */
#ifndef CORE_MAPS_H
#define CORE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Does this line of a map describe a shared, readable mapping of at least size bytes from start
 * on?
 */
bool maps_line_matches(const char *line, uintptr_t start, size_t size);

/* Is there such a mapping in this process? False too when the map cannot be read. */
bool maps_contains(uintptr_t start, size_t size);

#endif

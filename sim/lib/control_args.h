/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of the control language. */
#ifndef SIM_CONTROL_ARGS_H
#define SIM_CONTROL_ARGS_H

#include <stdbool.h>
#include <stdint.h>

bool parse_number(const char *word, int base, uint64_t most, uint64_t *value);

/* A missing word leaves the value as it is. */
bool parse_optional(const char *word, int base, uint64_t most, uint64_t *value);

#endif

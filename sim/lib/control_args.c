/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the words of the control language. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "control.h"
#include "control_args.h"

bool parse_number(const char *word, int base, uint64_t most, uint64_t *value)
{
	char *end;

	if (!word || !isxdigit((unsigned char)*word))
		return false;
	errno = 0;
	*value = strtoull(word, &end, base);
	return !*end && !errno && *value <= most;
}

bool parse_optional(const char *word, int base, uint64_t most, uint64_t *value)
{
	return !word || parse_number(word, base, most, value);
}

bool control_time(const char *text, uint64_t *ns)
{
	double value, unit;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	value = strtod(text, &end);
	if (!strcmp(end, "us"))
		unit = 1e3;
	else if (!strcmp(end, "ms"))
		unit = 1e6;
	else if (!strcmp(end, "s"))
		unit = 1e9;
	else
		return false;
	if (!(value * unit < 1e18))
		return false;
	*ns = (uint64_t)(value * unit);
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* One JSON object on one line, field by field. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool first; /* the next field is the object's first */
};

void json_begin(struct json *json, FILE *out);
void json_end(struct json *json);

/* Any bytes: what is not UTF-8 becomes the replacement character. */
void json_string(struct json *json, const char *name, const char *value);
void json_number(struct json *json, const char *name, int64_t value);
void json_count(struct json *json, const char *name, uint64_t value);
void json_decimal(struct json *json, const char *name, double value);
void json_bool(struct json *json, const char *name, bool value);
void json_words(struct json *json, const char *name, const uint32_t *values, size_t n);

#endif

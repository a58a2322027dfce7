/* SPDX-License-Identifier: BSD-2-Clause */
/* One JSON object on one line, field by field. */
#include <inttypes.h>

#include "json.h"

/*
 * The length of the UTF-8 sequence that text starts with, 0 if it is none. The lowest and highest
 * second byte differ by first byte: no overlong forms, no surrogates, nothing past U+10FFFF.
 */
static size_t utf8_length(const unsigned char *text)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t len, i;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	len = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	if (text[0] == 0xe0)
		low = 0xa0;
	if (text[0] == 0xed)
		high = 0x9f;
	if (text[0] == 0xf0)
		low = 0x90;
	if (text[0] == 0xf4)
		high = 0x8f;
	if (text[1] < low || text[1] > high)
		return 0;
	for (i = 2; i < len; i++) {
		if (text[i] < 0x80 || text[i] > 0xbf)
			return 0;
	}
	return len;
}

static void quote(FILE *out, const char *value)
{
	const unsigned char *text = (const unsigned char *)value;

	fputc('"', out);
	while (*text) {
		size_t len = utf8_length(text);

		if (len == 0)
			fputs("\\ufffd", out);
		else if (*text < 0x20 || *text == 0x7f)
			fprintf(out, "\\u%04x", *text);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fwrite(text, 1, len, out);
		text += len ? len : 1;
	}
	fputc('"', out);
}

static void name_field(struct json *json, const char *name)
{
	if (!json->first)
		fputc(',', json->out);
	json->first = false;
	quote(json->out, name);
	fputc(':', json->out);
}

void json_begin(struct json *json, FILE *out)
{
	json->out = out;
	json->first = true;
	fputc('{', out);
}

void json_end(struct json *json)
{
	fputs("}\n", json->out);
}

void json_string(struct json *json, const char *name, const char *value)
{
	name_field(json, name);
	quote(json->out, value);
}

void json_number(struct json *json, const char *name, int64_t value)
{
	name_field(json, name);
	fprintf(json->out, "%" PRId64, value);
}

void json_count(struct json *json, const char *name, uint64_t value)
{
	name_field(json, name);
	fprintf(json->out, "%" PRIu64, value);
}

void json_decimal(struct json *json, const char *name, double value)
{
	name_field(json, name);
	fprintf(json->out, "%.3f", value);
}

void json_bool(struct json *json, const char *name, bool value)
{
	name_field(json, name);
	fputs(value ? "true" : "false", json->out);
}

void json_words(struct json *json, const char *name, const uint32_t *values, size_t n)
{
	size_t i;

	name_field(json, name);
	fputc('[', json->out);
	for (i = 0; i < n; i++)
		fprintf(json->out, "%s%" PRIu32, i ? "," : "", values[i]);
	fputc(']', json->out);
}

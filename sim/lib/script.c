/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the fault script at the program's first look at a device and runs its lines in time. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "control.h"
#include "real.h"
#include "report.h"
#include "script.h"
#include "settings.h"

struct line {
	uint64_t due; /* since the start */
	unsigned number;
	char *text;
};

static struct {
	struct line *lines;
	size_t count, room, done;
	uint64_t start;
} script;

static bool make_room(void)
{
	size_t room = script.room ? script.room * 2 : 32;
	struct line *lines;

	if (script.count < script.room)
		return true;
	lines = realloc(script.lines, room * sizeof(*lines));
	if (!lines)
		return false;
	script.lines = lines;
	script.room = room;
	return true;
}

static void complain(unsigned number, const char *what)
{
	report_line("%s:%u: %s", settings()->faults, number, what);
}

static void add_line(char *text, unsigned number)
{
	char *command, why[CONTROL_REPLY];
	uint64_t due;

	text[strcspn(text, "#\n")] = '\0';
	text += strspn(text, " \t\r");
	if (!*text)
		return;
	command = text + strcspn(text, " \t");
	if (*command)
		*command++ = '\0';
	if (!control_time(text, &due)) {
		complain(number, "a line begins with a time, such as 500ms");
		return;
	}
	if (control_check(command, why, sizeof(why))) {
		complain(number, why);
		return;
	}
	if (!make_room())
		return;
	script.lines[script.count] = (struct line){ due, number, strdup(command) };
	script.count += script.lines[script.count].text != NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct line *one = a, *two = b;

	if (one->due != two->due)
		return one->due < two->due ? -1 : 1;
	return one->number < two->number ? -1 : 1;
}

static void load(void)
{
	FILE *file = real()->fopen(settings()->faults, "re");
	char *text = NULL;
	size_t size = 0;

	if (!file) {
		report_line("cannot read %s", settings()->faults);
		return;
	}
	for (unsigned number = 1; getline(&text, &size, file) >= 0; number++)
		add_line(text, number);
	free(text);
	fclose(file);
	if (script.count)
		qsort(script.lines, script.count, sizeof(*script.lines), by_time);
}

void script_start(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (!settings()->faults[0])
		return;
	load();
	script.start = now;
	script_run(now, &next);
}

void script_run(uint64_t now, uint64_t *next)
{
	char why[CONTROL_REPLY];

	while (script.done < script.count) {
		struct line *line = &script.lines[script.done];

		if (script.start + line->due > now) {
			if (script.start + line->due < *next)
				*next = script.start + line->due;
			return;
		}
		script.done++;
		if (control_run(line->text, why, sizeof(why)))
			complain(line->number, why);
		free(line->text);
	}
	free(script.lines);
	script.lines = NULL;
	script.room = script.count = script.done = 0;
}

void script_forget(void)
{
	script.lines = NULL;
	script.room = script.count = script.done = 0;
}

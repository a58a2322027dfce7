/* SPDX-License-Identifier: BSD-2-Clause */
/* The control language: splits a line, finds its command, applies it to one device or to all. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "control.h"
#include "control_verbs.h"
#include "device.h"

enum {
	MAX_WORDS = 12,
	ALL_DEVICES = -1,
};

struct words {
	char text[CONTROL_LINE];
	char *word[MAX_WORDS + 1];
	int count;
};

static int fail(struct reply *reply, int error, const char *why)
{
	snprintf(reply->text, reply->size, "%s", why);
	return error;
}

static bool split(const char *line, struct words *words)
{
	char *at = words->text;

	words->count = 0;
	if (strlen(line) >= sizeof(words->text))
		return false;
	strcpy(words->text, line);
	at[strcspn(at, "#\r\n")] = '\0';
	while (at += strspn(at, " \t"), *at) {
		if (words->count == MAX_WORDS)
			return false;
		words->word[words->count++] = at;
		at += strcspn(at, " \t");
		if (*at)
			*at++ = '\0';
	}
	words->word[words->count] = NULL;
	return true;
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

static bool parse_device(const char *word, int *device)
{
	char *end;
	unsigned long value;

	if (!strcmp(word, "*")) {
		*device = ALL_DEVICES;
		return true;
	}
	if (!isdigit((unsigned char)*word))
		return false;
	value = strtoul(word, &end, 10);
	*device = value < SIM_MAX_DEVICES ? (int)value : SIM_MAX_DEVICES;
	return !*end;
}

static int apply_to(struct device *dev, const struct verb *verb, char **args, struct reply *reply)
{
	if (verb->needs_open && !dev->open)
		return fail(reply, -ENETDOWN, "the device is not open");
	return verb->run(dev, args, reply);
}

/* With "*" a device that is not open is passed over, as long as one is. */
static int apply_to_all(const struct verb *verb, char **args, struct reply *reply)
{
	bool done = false, closed = false;

	for (struct device *dev = devices_begin(); dev < devices_end(); dev++) {
		int error = apply_to(dev, verb, args, reply);

		if (error && error != -ENETDOWN)
			return error;
		done |= !error;
		closed |= error != 0;
	}
	if (!done && !closed)
		return fail(reply, -ENODEV, "there is no device");
	return done ? fail(reply, 0, "") : -ENETDOWN;
}

static int run_verb(const struct verb *verb, const struct words *words, struct reply *reply)
{
	char **args = (char **)words->word + 1;
	struct device *dev;
	int device;

	if (!verb->on_device)
		return verb->run(NULL, args, reply);
	if (!parse_device(args[0], &device))
		return fail(reply, -EINVAL, "a device is a number or *");
	if (device == ALL_DEVICES)
		return apply_to_all(verb, args + 1, reply);
	dev = device_at((unsigned)device);
	if (!dev)
		return fail(reply, -ENODEV, "there is no such device");
	return apply_to(dev, verb, args + 1, reply);
}

static int find_verb(const struct words *words, const struct verb **verb, struct reply *reply)
{
	int args = words->count - 1;

	*verb = verb_find(words->word[0]);
	if (!*verb)
		return fail(reply, -EINVAL, "unknown command");
	if (args < (*verb)->least || args > (*verb)->most)
		return fail(reply, -EINVAL, "wrong number of arguments");
	return 0;
}

int control_run(const char *line, char *text, size_t size)
{
	struct reply reply = { text, size };
	const struct verb *verb;
	struct words words;
	int error;

	fail(&reply, 0, "");
	if (!split(line, &words))
		return fail(&reply, -EINVAL, "the line is too long");
	if (!words.count)
		return 0;
	error = find_verb(&words, &verb, &reply);
	if (error)
		return error;
	error = run_verb(verb, &words, &reply);
	if (error == -EINVAL && !*text)
		fail(&reply, error, "an argument is wrong");
	return error;
}

int control_check(const char *line, char *text, size_t size)
{
	struct reply reply = { text, size };
	const struct verb *verb;
	struct words words;

	if (!split(line, &words))
		return fail(&reply, -EINVAL, "the line is too long");
	if (!words.count)
		return fail(&reply, -EINVAL, "there is no command after the time");
	return find_verb(&words, &verb, &reply);
}

bool control_settle(const char *line, unsigned *device, uint64_t *ns)
{
	struct words words;
	int number;

	if (!split(line, &words) || words.count != 3 || strcmp(words.word[0], "settle") ||
	    !parse_device(words.word[1], &number) || !control_time(words.word[2], ns))
		return false;
	*device = (unsigned)number;
	return true;
}

/* What the program has just done is looked at first. */
static bool settled_now(struct device *dev)
{
	uint64_t next = UINT64_MAX;

	if (dev->open)
		device_step(dev, clock_now(), &next);
	return device_settled(dev);
}

bool control_settled(unsigned device)
{
	struct device *dev = device_at(device);
	bool settled = true;

	if (device != (unsigned)ALL_DEVICES)
		return !dev || settled_now(dev);
	for (dev = devices_begin(); dev < devices_end(); dev++)
		settled &= settled_now(dev);
	return settled;
}

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

static int fail(struct request *req, int error, const char *why)
{
	snprintf(req->reply, req->size, "%s", why);
	return error;
}

static bool split(const char *line, struct words *words)
{
	char *at = words->text;

	words->count = 0;
	if (strlen(line) >= sizeof(words->text))
		return false;
	memcpy(words->text, line, strlen(line) + 1);
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

static int apply_to(struct device *dev, const struct verb *verb, struct request *req)
{
	if (verb->needs_open && !dev->open)
		return fail(req, -ENETDOWN, "the device is not open");
	return verb->run(dev, req);
}

/* With "*" a device that is not open is passed over, as long as one is. */
static int apply_to_all(const struct verb *verb, struct request *req)
{
	bool done = false, closed = false;

	for (struct device *dev = devices_begin(); dev < devices_end(); dev++) {
		int error = apply_to(dev, verb, req);

		if (error && error != -ENETDOWN)
			return error;
		done |= !error;
		closed |= error != 0;
	}
	if (!done && !closed)
		return fail(req, -ENODEV, "there is no device");
	return done ? fail(req, 0, "") : -ENETDOWN;
}

static int run_verb(const struct verb *verb, struct words *words, struct request *req)
{
	struct device *dev;
	int device;

	req->args = words->word + 1;
	if (!verb->on_device)
		return verb->run(NULL, req);
	if (!parse_device(*req->args++, &device))
		return fail(req, -EINVAL, "a device is a number or *");
	if (device == ALL_DEVICES)
		return apply_to_all(verb, req);
	dev = device_at((unsigned)device);
	if (!dev)
		return fail(req, -ENODEV, "there is no such device");
	return apply_to(dev, verb, req);
}

static int find_verb(const struct words *words, const struct verb **verb, struct request *req)
{
	int args = words->count - 1;

	*verb = verb_find(words->word[0]);
	if (!*verb)
		return fail(req, -EINVAL, "unknown command");
	if (args < (*verb)->least || args > (*verb)->most)
		return fail(req, -EINVAL, "wrong number of arguments");
	return 0;
}

int control_run(const char *line, char *text, size_t size)
{
	struct request req = { .reply = text, .size = size };
	const struct verb *verb;
	struct words words;
	int error;

	fail(&req, 0, "");
	if (!split(line, &words))
		return fail(&req, -EINVAL, "the line is too long");
	if (!words.count)
		return 0;
	error = find_verb(&words, &verb, &req);
	if (error)
		return error;
	error = run_verb(verb, &words, &req);
	if (error && !*text)
		fail(&req, error, error == -EINVAL ? "an argument is wrong" : strerror(-error));
	return error;
}

int control_check(const char *line, char *text, size_t size)
{
	struct request req = { .reply = text, .size = size };
	const struct verb *verb;
	struct words words;

	if (!split(line, &words))
		return fail(&req, -EINVAL, "the line is too long");
	if (!words.count)
		return fail(&req, -EINVAL, "there is no command after the time");
	return find_verb(&words, &verb, &req);
}

static bool parse_wait(const struct words *words, struct control_wait *wait)
{
	int number;

	if (words->count < 2 || !parse_device(words->word[1], &number))
		return false;
	wait->device = (unsigned)number;
	wait->ns = UINT64_MAX;
	return words->count == 2 || control_time(words->word[2], &wait->ns);
}

bool control_takes_time(const char *line, struct control_wait *wait)
{
	struct words words;

	if (!split(line, &words) || !words.count || words.count > 3 || !parse_wait(&words, wait))
		return false;
	wait->for_close = !strcmp(words.word[0], "unbind");
	return wait->for_close || (words.count == 3 && !strcmp(words.word[0], "settle"));
}

/* What the program has just done is looked at first. */
static bool settled_now(struct device *dev)
{
	uint64_t next = UINT64_MAX;

	if (dev->open)
		device_step(dev, clock_now(), &next);
	return device_settled(dev);
}

static bool done_on(struct device *dev, const struct control_wait *wait)
{
	return wait->for_close ? !dev->notices.unbinding : settled_now(dev);
}

bool control_done(const struct control_wait *wait)
{
	struct device *dev = device_at(wait->device);
	bool done = true;

	if (wait->device != (unsigned)ALL_DEVICES)
		return !dev || done_on(dev, wait);
	for (dev = devices_begin(); dev < devices_end(); dev++)
		done &= done_on(dev, wait);
	return done;
}

const char *control_late(const struct control_wait *wait)
{
	return wait->for_close ? "the device was not closed" : "the device is still busy";
}

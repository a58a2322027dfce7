/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the control language. */
#ifndef SIM_CONTROL_VERBS_H
#define SIM_CONTROL_VERBS_H

#include <stdbool.h>
#include <stddef.h>

struct device;

struct reply {
	char *text;
	size_t size;
};

struct verb {
	const char *name;
	bool on_device; /* the first word after the name is a device */
	bool needs_open;
	int least, most;                                                  /* words after the name */
	int (*run)(struct device *dev, char **args, struct reply *reply); /* args end with NULL */
};

const struct verb *verb_find(const char *name);

#endif

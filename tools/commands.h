/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands that main.c dispatches to, and the exit statuses they share. */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include <stdbool.h>

enum status {
	STATUS_OK = 0,
	STATUS_USAGE = 1, /* also: the output cannot be written */
	STATUS_CANNOT_OPEN = 2,
	STATUS_DEVICE_DIED = 3,
};

struct monitor_options {
	bool json;
	double seconds;  /* 0: until a signal */
	int interval_ms; /* -1: the library's default */
	bool unguarded;  /* without the library's guard */
	char *const *pci_names;
	int count;
};

enum status monitor(const struct monitor_options *options);
enum status check(char *const *pci_names, int count);

#endif

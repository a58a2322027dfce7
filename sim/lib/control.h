/* SPDX-License-Identifier: BSD-2-Clause */
/* The control language. Called with the engine's lock held; errors are negative errnos. */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONTROL_LINE = 256,
	CONTROL_REPLY = 512,
};

/* Runs one line. The reply is the answer, or says what is wrong. */
int control_run(const char *line, char *reply, size_t size);

/* Looks only whether the line would parse. */
int control_check(const char *line, char *reply, size_t size);

/* A number with us, ms or s, in nanoseconds. */
bool control_time(const char *text, uint64_t *ns);

/*
 * Two commands take time, so whoever got the line waits: settle until the device has nothing to do,
 * unbind, which is run first, until the program has closed the device.
 */
struct control_wait {
	bool for_close;
	unsigned device; /* UINT32_MAX stands for all */
	uint64_t ns;     /* how long at most; UINT64_MAX: for ever */
};

/* True when line is such a command, well formed. */
bool control_takes_time(const char *line, struct control_wait *wait);
bool control_done(const struct control_wait *wait);

/* What to say when the time is over. */
const char *control_late(const struct control_wait *wait);

#endif

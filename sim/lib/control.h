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
 * settle is the one command that takes time, so whoever got the line waits. Returns true when line
 * is a well-formed settle; device UINT32_MAX stands for all.
 */
bool control_settle(const char *line, unsigned *device, uint64_t *ns);
bool control_settled(unsigned device);

#endif

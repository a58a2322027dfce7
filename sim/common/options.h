/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of mlx5vfio-sim. */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	EXIT_USAGE = 1,
};

struct options {
	unsigned devices;
	uint64_t seed;
	bool report, maps_offset, infiniband;
	char faults[PATH_MAX];
	const char *socket;
	const char *parent; /* where the private directory is made */
};

/* Returns the index of the program in argv, or 0 when *status is how to end. */
int parse_options(int argc, char **argv, struct options *options, int *status);

/* A line on stderr. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

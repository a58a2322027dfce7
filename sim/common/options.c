/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the command line of mlx5vfio-sim. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "naming.h"
#include "options.h"

#ifndef MLX5VFIO_VERSION
#define MLX5VFIO_VERSION "unreleased"
#endif

void say(const char *format, ...)
{
	va_list args;

	fputs("mlx5vfio-sim: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static int usage(FILE *to)
{
	fputs("usage: mlx5vfio-sim [OPTIONS] [--] PROGRAM [ARGS…]\n"
	      "Runs PROGRAM with simulated mlx5 VFIO devices.\n\n"
	      "  --devices N     number of devices (1)\n"
	      "  --faults FILE   fault script\n"
	      "  --seed N        seed of the random choices (1)\n"
	      "  --report        a line of counters on stderr when a device is closed\n"
	      "  --socket PATH   control socket (in the private directory)\n"
	      "  --dir DIR       where the private directory is made ($TMPDIR or /tmp)\n"
	      "  --maps-offset   BAR0's mapping shows the bus address as its offset\n"
	      "  --port eth|ib   kind of the port (eth)\n"
	      "  --help, --version\n",
	      to);
	return to == stdout ? 0 : EXIT_USAGE;
}

static bool parse_number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !*end && !errno && *value <= most;
}

static bool set_devices(struct options *options, const char *text)
{
	uint64_t value;

	if (!parse_number(text, SIM_MAX_DEVICES, &value)) {
		say("--devices takes a number up to %d", SIM_MAX_DEVICES);
		return false;
	}
	options->devices = (unsigned)value;
	return true;
}

static bool set_seed(struct options *options, const char *text)
{
	if (parse_number(text, UINT64_MAX, &options->seed))
		return true;
	say("--seed takes a number");
	return false;
}

static bool set_port(struct options *options, const char *text)
{
	options->infiniband = !strcmp(text, "ib");
	if (options->infiniband || !strcmp(text, "eth"))
		return true;
	say("--port takes eth or ib");
	return false;
}

/* The program may change its directory before the script is read. */
static bool set_faults(struct options *options, const char *path)
{
	if (realpath(path, options->faults) && !access(options->faults, R_OK))
		return true;
	say("%s: %s", path, strerror(errno));
	return false;
}

static bool apply_option(struct options *options, int option, const char *text)
{
	switch (option) {
	case 'n':
		return set_devices(options, text);
	case 'f':
		return set_faults(options, text);
	case 's':
		return set_seed(options, text);
	case 'r':
		options->report = true;
		return true;
	case 'k':
		options->socket = text;
		return true;
	case 'd':
		options->parent = text;
		return true;
	case 'm':
		options->maps_offset = true;
		return true;
	case 'p':
		return set_port(options, text);
	default:
		return false;
	}
}

int parse_options(int argc, char **argv, struct options *options, int *status)
{
	static const struct option known[] = {
		{ "devices", required_argument, NULL, 'n' },
		{ "faults", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ "report", no_argument, NULL, 'r' },
		{ "socket", required_argument, NULL, 'k' },
		{ "dir", required_argument, NULL, 'd' },
		{ "maps-offset", no_argument, NULL, 'm' },
		{ "port", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*status = EXIT_USAGE;
	while ((option = getopt_long(argc, argv, "+h", known, NULL)) >= 0) {
		if (option == 'h') {
			*status = usage(stdout);
			return 0;
		}
		if (option == 'V') {
			puts("mlx5vfio-sim " MLX5VFIO_VERSION);
			*status = 0;
			return 0;
		}
		if (!apply_option(options, option, optarg))
			return 0;
	}
	if (optind < argc)
		return optind;
	*status = usage(stderr);
	return 0;
}

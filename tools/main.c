/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5vfio: the command line. */
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mlx5vfio/core.h>

#include "commands.h"

static void print_usage(FILE *out)
{
	fputs("usage: mlx5vfio monitor [--loop uv] [--seconds N] [--json] [--interval MS] [--no-guard]\n"
	      "                        PCI...\n"
	      "       mlx5vfio check PCI...\n"
	      "       mlx5vfio --help | --version\n",
	      out);
}

static void print_help(void)
{
	print_usage(stdout);
	fputs("\n"
	      "Puts mlx5 devices that are bound to vfio-pci into an event loop and tells what\n"
	      "happens. PCI is a name like 0000:b0:00.0.\n"
	      "\n"
	      "  monitor   open the devices and print one line an event, until Ctrl-C\n"
	      "  check     tell whether the devices can be opened, and why not\n"
	      "\n"
	      "'mlx5vfio COMMAND --help' tells more. Exit status: 0 well, 1 usage, 2 a device\n"
	      "cannot be opened, 3 a device died.\n",
	      stdout);
}

static void print_monitor_help(void)
{
	fputs("usage: mlx5vfio monitor [--loop uv] [--seconds N] [--json] [--interval MS] [--no-guard]\n"
	      "                        PCI...\n"
	      "\n"
	      "Opens the devices, attaches them to one event loop and prints one line an event,\n"
	      "then a table. A device that dies is reported and the others go on.\n"
	      "\n"
	      "  --loop uv       the event loop library (uv is the only one)\n"
	      "  --seconds N     end after N seconds; without it at Ctrl-C or SIGTERM\n"
	      "  --json          one JSON object a line\n"
	      "  --interval MS   the health tick, 10 to 3600000 ms, 0 for none (default 500)\n"
	      "  --no-guard      let libmlx5 abort() this program when a device dies\n",
	      stdout);
}

static void print_check_help(void)
{
	fputs("usage: mlx5vfio check PCI...\n"
	      "\n"
	      "Tells of each device whether it can be opened, and if not, why. Opens nothing.\n",
	      stdout);
}

static enum status usage_error(const char *what, const char *value)
{
	fprintf(stderr, "mlx5vfio: %s%s%s\n", what, value ? ": " : "", value ? value : "");
	print_usage(stderr);
	return STATUS_USAGE;
}

static bool parse_seconds(const char *text, double *seconds)
{
	char *rest;

	*seconds = strtod(text, &rest);
	return rest != text && *rest == '\0' && isfinite(*seconds) && *seconds > 0 &&
	       *seconds <= 1e9;
}

static bool parse_interval(const char *text, int *ms)
{
	char *rest;
	long value = strtol(text, &rest, 10);

	*ms = (int)value;
	return rest != text && *rest == '\0' && (value == 0 || (value >= 10 && value <= 3600000));
}

enum monitor_option {
	OPTION_LOOP = 256,
	OPTION_SECONDS,
	OPTION_JSON,
	OPTION_INTERVAL,
	OPTION_NO_GUARD,
	OPTION_HELP
};

static enum status run_monitor(int argc, char **argv)
{
	static const struct option known[] = {
		{ "loop", required_argument, NULL, OPTION_LOOP },
		{ "seconds", required_argument, NULL, OPTION_SECONDS },
		{ "json", no_argument, NULL, OPTION_JSON },
		{ "interval", required_argument, NULL, OPTION_INTERVAL },
		{ "no-guard", no_argument, NULL, OPTION_NO_GUARD },
		{ "help", no_argument, NULL, OPTION_HELP },
		{ NULL, 0, NULL, 0 },
	};
	struct monitor_options options = { .interval_ms = -1 };
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case OPTION_LOOP:
			if (strcmp(optarg, "uv") != 0)
				return usage_error("there is no such loop, only uv", optarg);
			break;
		case OPTION_SECONDS:
			if (!parse_seconds(optarg, &options.seconds))
				return usage_error("--seconds wants a positive number", optarg);
			break;
		case OPTION_JSON:
			options.json = true;
			break;
		case OPTION_INTERVAL:
			if (!parse_interval(optarg, &options.interval_ms))
				return usage_error("--interval wants 0 or 10 to 3600000", optarg);
			break;
		case OPTION_NO_GUARD:
			options.unguarded = true;
			break;
		case OPTION_HELP:
			print_monitor_help();
			return STATUS_OK;
		default:
			print_usage(stderr);
			return STATUS_USAGE;
		}
	}
	if (optind == argc)
		return usage_error("monitor wants a PCI name", NULL);
	options.pci_names = argv + optind;
	options.count = argc - optind;
	return monitor(&options);
}

static enum status run_check(int argc, char **argv)
{
	static const struct option known[] = {
		{ "help", no_argument, NULL, OPTION_HELP },
		{ NULL, 0, NULL, 0 },
	};
	int option = getopt_long(argc, argv, "", known, NULL);

	if (option == OPTION_HELP) {
		print_check_help();
		return STATUS_OK;
	}
	if (option != -1) {
		print_usage(stderr);
		return STATUS_USAGE;
	}
	if (optind == argc)
		return usage_error("check wants a PCI name", NULL);
	return check(argv + optind, argc - optind);
}

static enum status dispatch(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";

	if (strcmp(command, "monitor") == 0)
		return run_monitor(argc - 1, argv + 1);
	if (strcmp(command, "check") == 0)
		return run_check(argc - 1, argv + 1);
	if (strcmp(command, "--version") == 0) {
		printf("mlx5vfio %s\n", mlx5vfio_version());
		return STATUS_OK;
	}
	if (strcmp(command, "--help") == 0 || strcmp(command, "help") == 0) {
		print_help();
		return STATUS_OK;
	}
	if (*command == '\0')
		return usage_error("a command is missing", NULL);
	return usage_error("there is no such command", command);
}

/*
 * With a standard stream closed, the next file opened would get its number, and a line of ours
 * could end up in a VFIO device. Read-only, so that a write fails as it would on the closed stream.
 */
static void fill_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	fill_standard_streams();
	/* A reader that goes away is noticed by the write that fails. */
	signal(SIGPIPE, SIG_IGN);
	return (int)dispatch(argc, argv);
}

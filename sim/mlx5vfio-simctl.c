/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5vfio-simctl: sends one command to a running simulator and prints its answer. */
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/naming.h"

#ifndef MLX5VFIO_VERSION
#define MLX5VFIO_VERSION "unreleased"
#endif

enum {
	EXIT_USAGE = 1,
	EXIT_REFUSED = 2,
	MAX_LINE = 256,
};

static int usage(FILE *to)
{
	fputs("usage: mlx5vfio-simctl [--socket PATH] COMMAND…\n"
	      "Sends COMMAND to a running mlx5vfio-sim. Without --socket: to $" SIM_ENV_SOCKET ",\n"
	      "else to the newest simulator that you run.\n",
	      to);
	return to == stdout ? 0 : EXIT_USAGE;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool newer(const struct stat *one, const struct stat *two)
{
	if (one->st_mtim.tv_sec != two->st_mtim.tv_sec)
		return one->st_mtim.tv_sec > two->st_mtim.tv_sec;
	return one->st_mtim.tv_nsec > two->st_mtim.tv_nsec;
}

static int connect_newest_in(const char *parent)
{
	char pattern[4096];
	struct stat newest = { 0 };
	glob_t found;
	int best = -1;

	snprintf(pattern, sizeof(pattern), "%s/" SIM_DIR_PREFIX "*/control", parent);
	if (glob(pattern, 0, NULL, &found))
		return -1;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct stat st;
		int fd;

		if (lstat(found.gl_pathv[i], &st) || st.st_uid != geteuid() ||
		    !S_ISSOCK(st.st_mode) || !newer(&st, &newest))
			continue;
		fd = connect_to(found.gl_pathv[i]);
		if (fd < 0)
			continue;
		if (best >= 0)
			close(best);
		best = fd;
		newest = st;
	}
	globfree(&found);
	return best;
}

static int connect_newest(void)
{
	const char *parent = getenv("TMPDIR");
	int fd = parent && *parent ? connect_newest_in(parent) : -1;

	return fd >= 0 ? fd : connect_newest_in("/tmp");
}

static int connect_somewhere(const char *path)
{
	int fd;

	if (!path)
		path = getenv(SIM_ENV_SOCKET);
	fd = path && *path ? connect_to(path) : connect_newest();
	if (fd < 0 && path && *path)
		fprintf(stderr, "mlx5vfio-simctl: %s: %s\n", path, strerror(errno));
	else if (fd < 0)
		fputs("mlx5vfio-simctl: no simulator of yours has looked at a device yet\n",
		      stderr);
	return fd;
}

static bool join_words(char **words, char line[MAX_LINE])
{
	size_t used = 0;

	for (; *words; words++) {
		size_t length = strlen(*words);

		if (used + length + 2 > MAX_LINE || strchr(*words, '\n'))
			return false;
		memcpy(line + used, *words, length);
		used += length;
		line[used++] = words[1] ? ' ' : '\n';
	}
	line[used] = '\0';
	return true;
}

/* Prints what follows ok or error. */
static int print_answer(const char *answer)
{
	if (!strncmp(answer, "ok", 2)) {
		fputs(answer[2] == ' ' ? answer + 3 : "", stdout);
		return 0;
	}
	fprintf(stderr, "mlx5vfio-simctl: %s", strncmp(answer, "error ", 6) ? answer : answer + 6);
	return EXIT_REFUSED;
}

static int converse(int fd, const char *line)
{
	char answer[1024];
	FILE *stream = fdopen(fd, "r+");
	bool answered;

	if (!stream)
		return EXIT_USAGE;
	fputs(line, stream);
	fflush(stream);
	answered = fgets(answer, sizeof(answer), stream) != NULL;
	fclose(stream);
	if (answered)
		return print_answer(answer);
	fputs("mlx5vfio-simctl: the simulator ended without an answer\n", stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	const char *path = NULL;
	char line[MAX_LINE];
	int option, fd;

	while ((option = getopt_long(argc, argv, "+h", known, NULL)) >= 0) {
		if (option == 'h')
			return usage(stdout);
		if (option == 'V')
			return puts("mlx5vfio-simctl " MLX5VFIO_VERSION) < 0;
		if (option != 's')
			return EXIT_USAGE;
		path = optarg;
	}
	if (optind == argc)
		return usage(stderr);
	if (!join_words(argv + optind, line)) {
		fputs("mlx5vfio-simctl: the command is too long\n", stderr);
		return EXIT_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	fd = connect_somewhere(path);
	return fd < 0 ? EXIT_USAGE : converse(fd, line);
}

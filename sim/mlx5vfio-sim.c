/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5vfio-sim: runs a program with the simulator's library preloaded. Makes the file tree in which
 * the program finds its devices, waits for the program, and ends as it ended.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/naming.h"
#include "common/options.h"
#include "common/program.h"
#include "common/tree.h"

enum {
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

static volatile sig_atomic_t child;

/* Finds program as execvp would. */
static bool find_program(const char *program, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");

	if (strchr(program, '/')) {
		snprintf(path, PATH_MAX, "%s", program);
		return !access(path, F_OK);
	}
	if (!dirs)
		dirs = "/usr/local/bin:/usr/bin:/bin";
	while (*dirs) {
		size_t length = strcspn(dirs, ":");

		snprintf(path, PATH_MAX, "%.*s/%s", length ? (int)length : 1, length ? dirs : ".",
			 program);
		if (!access(path, X_OK))
			return true;
		dirs += length + (dirs[length] == ':');
	}
	errno = ENOENT;
	return false;
}

/* Returns 0, or the exit status. The dynamic linker ignores a preload for set-uid programs. */
static int check_program(const char *program)
{
	char path[PATH_MAX];
	const char *refusal;
	struct stat st;

	if (!find_program(program, path) || stat(path, &st)) {
		say("%s: %s", program, strerror(errno));
		return errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	}
	if (!S_ISREG(st.st_mode) || access(path, X_OK)) {
		say("%s: not executable", program);
		return EXIT_NOT_EXECUTABLE;
	}
	refusal = program_refusal(path);
	if (refusal) {
		say("%s: %s", program, refusal);
		return EXIT_USAGE;
	}
	return 0;
}

/* The library lies beside us, in the build directory as well as when installed. */
static bool find_library(char path[PATH_MAX])
{
	static const char *const places[] = {
		"../lib/libmlx5vfio-sim.so",
		"../lib/mlx5vfio/libmlx5vfio-sim.so",
	};
	char self[PATH_MAX / 2];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length > 0) {
		self[length] = '\0';
		*strrchr(self, '/') = '\0';
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			char candidate[PATH_MAX];

			snprintf(candidate, sizeof(candidate), "%s/%s", self, places[i]);
			if (realpath(candidate, path))
				return true;
		}
	}
#ifdef SIM_LIBDIR
	if (realpath(SIM_LIBDIR "/libmlx5vfio-sim.so", path))
		return true;
#endif
	say("libmlx5vfio-sim.so is not where it should be");
	return false;
}

static const char *chosen_socket;

static void clean_up(void)
{
	struct stat st;

	tree_remove();
	if (chosen_socket && !lstat(chosen_socket, &st) && S_ISSOCK(st.st_mode))
		unlink(chosen_socket);
	chosen_socket = NULL;
}

static void set_number(const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	setenv(name, text, 1);
}

/* LD_PRELOAD cannot name a path with a space or a colon; through a link ours never has one. */
static bool link_library(const char *library, char link[PATH_MAX])
{
	snprintf(link, PATH_MAX, "%s/libmlx5vfio-sim.so", tree_dir());
	if (strpbrk(link, " :")) {
		say("%s: the temporary directory's name has a space or a colon", tree_dir());
		return false;
	}
	if (symlink(library, link)) {
		say("%s: %s", link, strerror(errno));
		return false;
	}
	return true;
}

static bool set_environment(const struct options *options, const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char text[2 * PATH_MAX];

	if (snprintf(text, sizeof(text), "%s%s%s", library, before && *before ? ":" : "",
		     before ? before : "") >= (int)sizeof(text)) {
		say("LD_PRELOAD is too long");
		return false;
	}
	setenv("LD_PRELOAD", text, 1);
	setenv(SIM_ENV_DIR, tree_dir(), 1);
	setenv(SIM_ENV_FAULTS, options->faults, 1);
	set_number(SIM_ENV_DEVICES, options->devices);
	set_number(SIM_ENV_SEED, options->seed);
	set_number(SIM_ENV_REPORT, options->report);
	set_number(SIM_ENV_MAPS_OFFSET, options->maps_offset);
	set_number(SIM_ENV_INFINIBAND, options->infiniband);
	if (options->socket && options->socket[0] != '/') {
		char directory[PATH_MAX];

		snprintf(text, sizeof(text), "%s/%s", getcwd(directory, sizeof(directory)),
			 options->socket);
	} else {
		snprintf(text, sizeof(text), "%s%s", options->socket ? options->socket : tree_dir(),
			 options->socket ? "" : "/control");
	}
	if (strlen(text) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		say("%s is too long for a socket", text);
		return false;
	}
	setenv(SIM_ENV_SOCKET, text, 1);
	return true;
}

static void forward(int signal)
{
	if (child > 0)
		kill((pid_t)child, signal);
}

static const int forwarded[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };

enum {
	FORWARDED = sizeof(forwarded) / sizeof(forwarded[0]),
};

static void set_signals(void (*for_forwarded)(int), void (*for_terminal)(int))
{
	struct sigaction action = { .sa_handler = for_forwarded, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	for (int i = 0; i < FORWARDED; i++)
		sigaction(forwarded[i], &action, NULL);
	/* The terminal sends these to the program as well; it decides. */
	action.sa_handler = for_terminal;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGQUIT, &action, NULL);
}

static _Noreturn void run_program(char **argv, pid_t launcher, const sigset_t *mask,
				  const struct sigaction before[2])
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != launcher)
		_exit(EXIT_USAGE);
	set_signals(SIG_DFL, SIG_DFL);
	sigaction(SIGINT, &before[0], NULL);
	sigaction(SIGQUIT, &before[1], NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	say("%s: %s", argv[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* Returns the wait status of the program, or -1. */
static int run_and_wait(char **argv)
{
	sigset_t all, mask;
	struct sigaction before[2];
	pid_t launcher = getpid(), pid;
	int status;

	sigaction(SIGINT, NULL, &before[0]);
	sigaction(SIGQUIT, NULL, &before[1]);
	/* A signal that comes before we know the child would be lost. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	pid = fork();
	if (pid < 0) {
		say("fork: %s", strerror(errno));
		return -1;
	}
	if (!pid)
		run_program(argv, launcher, &mask, before);
	child = pid;
	set_signals(forward, SIG_IGN);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	child = 0;
	return status;
}

/* The caller shall see what it would have seen without us. */
static int end_as(int status)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t one;

	if (status < 0)
		return EXIT_USAGE;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_DUMPABLE, 0);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct options options = { .devices = 1, .seed = 1 };
	char library[PATH_MAX], link[PATH_MAX];
	int status, program = parse_options(argc, argv, &options, &status);

	if (!program)
		return status;
	status = check_program(argv[program]);
	if (status)
		return status;
	if (!find_library(library))
		return EXIT_USAGE;
	atexit(clean_up);
	chosen_socket = options.socket;
	if (!tree_make(&options) || !link_library(library, link) ||
	    !set_environment(&options, link))
		return EXIT_USAGE;
	status = run_and_wait(argv + program);
	clean_up();
	return end_as(status);
}

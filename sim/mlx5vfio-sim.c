/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5vfio-sim: runs a program with the simulator's library preloaded. Makes the file tree in which
 * the program finds its devices, waits for the program, and ends as it ended.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/naming.h"

#ifndef MLX5VFIO_VERSION
#define MLX5VFIO_VERSION "unreleased"
#endif

enum {
	EXIT_USAGE = 1,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

struct options {
	unsigned long devices;
	uint64_t seed;
	bool report, maps_offset;
	char faults[PATH_MAX];
	const char *socket;
	const char *parent; /* where the private directory is made */
};

static char private_dir[256];
static const char *chosen_socket;
static volatile sig_atomic_t child;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
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
	options->devices = value;
	return true;
}

static bool set_seed(struct options *options, const char *text)
{
	if (parse_number(text, UINT64_MAX, &options->seed))
		return true;
	say("--seed takes a number");
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
	default:
		return false;
	}
}

/* Returns the index of PROGRAM, or 0 when *status is how to end. */
static int parse_options(int argc, char **argv, struct options *options, int *status)
{
	static const struct option known[] = {
		{ "devices", required_argument, NULL, 'n' },
		{ "faults", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ "report", no_argument, NULL, 'r' },
		{ "socket", required_argument, NULL, 'k' },
		{ "dir", required_argument, NULL, 'd' },
		{ "maps-offset", no_argument, NULL, 'm' },
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
	struct stat st;

	if (!find_program(program, path) || stat(path, &st)) {
		say("%s: %s", program, strerror(errno));
		return errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	}
	if (!S_ISREG(st.st_mode) || access(path, X_OK)) {
		say("%s: not executable", program);
		return EXIT_NOT_EXECUTABLE;
	}
	if (st.st_mode & (S_ISUID | S_ISGID)) {
		say("%s: is set-uid or set-gid and cannot be simulated", program);
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

/* All of the tree is made relative to the private directory; the first error is kept. */
static int tree_error;

static void note_error(bool failed)
{
	if (failed && !tree_error)
		tree_error = errno;
}

static void tree_path(char path[PATH_MAX], const char *format, va_list args)
{
	int used = snprintf(path, PATH_MAX, "%s/", private_dir);

	vsnprintf(path + used, (size_t)(PATH_MAX - used), format, args);
}

static void tree_directory(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void tree_directory(const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	tree_path(path, format, args);
	va_end(args);
	for (char *slash = path + strlen(private_dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		note_error(mkdir(path, 0755) && errno != EEXIST);
		*slash = '/';
	}
	note_error(mkdir(path, 0755) && errno != EEXIST);
}

static void tree_file(const char *content, mode_t mode, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void tree_file(const char *content, mode_t mode, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int fd;

	va_start(args, format);
	tree_path(path, format, args);
	va_end(args);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	note_error(fd < 0);
	if (fd < 0)
		return;
	note_error(write(fd, content, strlen(content)) < 0 || fchmod(fd, mode));
	close(fd);
}

static void tree_link(const char *target, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void tree_link(const char *target, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	tree_path(path, format, args);
	va_end(args);
	note_error(symlink(target, path) != 0);
}

/* The lines of sysfs's resource file: six BARs and the ROM. */
static void format_resource(char *text, size_t size, uint64_t bar)
{
	int used = snprintf(text, size, "0x%016" PRIx64 " 0x%016" PRIx64 " 0x000000000014220c\n",
			    bar, bar + SIM_BAR_SIZE - 1);

	for (int line = 1; line < 7; line++)
		used += snprintf(text + used, size - (size_t)used, "0x%016x 0x%016x 0x%016x\n", 0,
				 0, 0);
}

static void add_device(const char *name, unsigned vendor, unsigned device, uint64_t bar,
		       unsigned group)
{
	char text[512];

	tree_directory("sys/bus/pci/devices/%s", name);
	tree_directory("sys/kernel/iommu_groups/%u/devices", group);
	snprintf(text, sizeof(text), "0x%04x\n", vendor);
	tree_file(text, 0444, "sys/bus/pci/devices/%s/vendor", name);
	snprintf(text, sizeof(text), "0x%04x\n", device);
	tree_file(text, 0444, "sys/bus/pci/devices/%s/device", name);
	snprintf(text, sizeof(text), "0x%06x\n", SIM_CLASS);
	tree_file(text, 0444, "sys/bus/pci/devices/%s/class", name);
	format_resource(text, sizeof(text), bar);
	tree_file(text, 0444, "sys/bus/pci/devices/%s/resource", name);
	snprintf(text, sizeof(text), "../../../../kernel/iommu_groups/%u", group);
	tree_link(text, "sys/bus/pci/devices/%s/iommu_group", name);
	tree_link("../../drivers/vfio-pci", "sys/bus/pci/devices/%s/driver", name);
	snprintf(text, sizeof(text), "../../devices/%s", name);
	tree_link(text, "sys/bus/pci/drivers/vfio-pci/%s", name);
	snprintf(text, sizeof(text), "../../../../bus/pci/devices/%s", name);
	tree_link(text, "sys/kernel/iommu_groups/%u/devices/%s", group, name);
	tree_file("", 0666, "dev/vfio/%u", group);
}

static bool make_tree(const struct options *options)
{
	mode_t mask = umask(022);
	char name[SIM_NAME_SIZE];

	tree_directory("sys/bus/pci/drivers/vfio-pci");
	tree_directory("dev/vfio");
	tree_file("", 0666, "dev/vfio/vfio");
	add_device(SIM_OTHER_NAME, 0x8086, 0x1592, UINT64_C(0x1f00000000), SIM_OTHER_GROUP);
	for (unsigned i = 0; i < options->devices; i++) {
		sim_device_name(i, name);
		add_device(name, SIM_VENDOR, SIM_DEVICE, sim_bar_address(i), SIM_FIRST_GROUP + i);
	}
	umask(mask);
	if (tree_error)
		say("cannot make the file tree in %s: %s", private_dir, strerror(tree_error));
	return !tree_error;
}

static bool make_private_dir(const struct options *options)
{
	const char *parent = options->parent ? options->parent : getenv("TMPDIR");
	char real[PATH_MAX];

	if (!parent || !*parent)
		parent = "/tmp";
	if (!realpath(parent, real) ||
	    strlen(real) + sizeof("/" SIM_DIR_PREFIX "XXXXXX") > sizeof(private_dir)) {
		say("%s: %s", parent, strerror(errno ? errno : ENAMETOOLONG));
		return false;
	}
	sprintf(private_dir, "%s/" SIM_DIR_PREFIX "XXXXXX", real);
	if (mkdtemp(private_dir))
		return true;
	say("%s: %s", private_dir, strerror(errno));
	private_dir[0] = '\0';
	return false;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	remove(path);
	return 0;
}

static void clean_up(void)
{
	struct stat st;

	if (private_dir[0])
		nftw(private_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (chosen_socket && !lstat(chosen_socket, &st) && S_ISSOCK(st.st_mode))
		unlink(chosen_socket);
}

static void set_number(const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	setenv(name, text, 1);
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
	setenv(SIM_ENV_DIR, private_dir, 1);
	setenv(SIM_ENV_FAULTS, options->faults, 1);
	set_number(SIM_ENV_DEVICES, options->devices);
	set_number(SIM_ENV_SEED, options->seed);
	set_number(SIM_ENV_REPORT, options->report);
	set_number(SIM_ENV_MAPS_OFFSET, options->maps_offset);
	if (options->socket && options->socket[0] != '/') {
		char directory[PATH_MAX];

		snprintf(text, sizeof(text), "%s/%s", getcwd(directory, sizeof(directory)),
			 options->socket);
	} else {
		snprintf(text, sizeof(text), "%s%s",
			 options->socket ? options->socket : private_dir,
			 options->socket ? "" : "/control");
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
	char library[PATH_MAX];
	int status, program = parse_options(argc, argv, &options, &status);

	if (!program)
		return status;
	status = check_program(argv[program]);
	if (status)
		return status;
	if (!find_library(library) || !make_private_dir(&options))
		return EXIT_USAGE;
	atexit(clean_up);
	chosen_socket = options.socket;
	if (!make_tree(&options) || !set_environment(&options, library))
		return EXIT_USAGE;
	status = run_and_wait(argv + program);
	clean_up();
	private_dir[0] = '\0';
	chosen_socket = NULL;
	return end_as(status);
}

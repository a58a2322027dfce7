/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the file tree: the parts of /sys and /dev that a VFIO program looks at. The preload library
 * leads the program there.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "naming.h"
#include "options.h"
#include "tree.h"

enum {
	LEFT_OVER_AGE = 60, /* seconds */
};

static char private_dir[256];

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

static bool fill_tree(const struct options *options)
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

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	remove(path);
	return 0;
}

void tree_remove(void)
{
	if (private_dir[0])
		nftw(private_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	private_dir[0] = '\0';
}

/* The lock lives as long as this process and tells others that the directory is in use. */
static int lock_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A young directory may belong to somebody who has not come to lock it yet. */
static bool is_left_over(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       st.st_ctim.tv_sec + LEFT_OVER_AGE < time(NULL);
}

/* A simulator that was killed could not clean up. */
static void remove_left_overs(const char *parent)
{
	char pattern[PATH_MAX + 32];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/" SIM_DIR_PREFIX "??????", parent);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int fd = is_left_over(found.gl_pathv[i]) ? lock_directory(found.gl_pathv[i]) : -1;

		if (fd < 0)
			continue;
		nftw(found.gl_pathv[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
		close(fd);
	}
	globfree(&found);
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
	remove_left_overs(real);
	sprintf(private_dir, "%s/" SIM_DIR_PREFIX "XXXXXX", real);
	if (mkdtemp(private_dir) && lock_directory(private_dir) >= 0)
		return true;
	say("%s: %s", private_dir, strerror(errno));
	private_dir[0] = '\0';
	return false;
}

bool tree_make(const struct options *options)
{
	return make_private_dir(options) && fill_tree(options);
}

const char *tree_dir(void)
{
	return private_dir;
}

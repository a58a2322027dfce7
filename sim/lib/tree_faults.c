/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes to the launcher's file tree. The tree alone knows what is changed, so that the processes
 * of one simulator agree; what is undone need not have been done.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "device.h"
#include "real.h"
#include "settings.h"
#include "tree_faults.h"

#define DEVICES "sys/bus/pci/devices/"
#define DRIVERS "sys/bus/pci/drivers/"
#define GROUPS  "sys/kernel/iommu_groups/"

typedef char tree_path_t[PATH_MAX];

static void in_tree(tree_path_t path, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void in_tree(tree_path_t path, const char *format, ...)
{
	int used = snprintf(path, PATH_MAX, "%s/", settings()->dir);
	va_list args;

	va_start(args, format);
	vsnprintf(path + used, (size_t)(PATH_MAX - used), format, args);
	va_end(args);
}

static unsigned group_of(const struct device *dev)
{
	return SIM_FIRST_GROUP + dev->index;
}

/* What holds already is no failure. */
static int unless(int expected, int result)
{
	return result && errno != expected ? -errno : 0;
}

static int make_directory(const char *path)
{
	return unless(EEXIST, mkdir(path, 0755));
}

static int make_link(const char *target, const char *path)
{
	int error = unless(ENOENT, unlink(path));

	return error ? error : unless(0, symlink(target, path));
}

static int make_file(const char *path, const char *content)
{
	int fd = real()->open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
	ssize_t written = fd < 0 ? -1 : write(fd, content, strlen(content));
	int error = written < 0 ? -errno : 0;

	if (fd >= 0)
		real()->close(fd);
	return error;
}

/*
 * The file is moved out of sight and not removed: its lock says whether the group is in use, also by
 * a process that goes on in spite of it.
 */
static int show_group_file(const struct device *dev, bool show)
{
	tree_path_t directory, shown, hidden;
	int error;

	in_tree(directory, "hidden");
	in_tree(hidden, "hidden/%u", group_of(dev));
	in_tree(shown, "dev/vfio/%u", group_of(dev));
	if (show)
		return unless(ENOENT, rename(hidden, shown));
	error = make_directory(directory);
	return error ? error : unless(ENOENT, rename(shown, hidden));
}

static bool driver_is_vfio(const char *driver)
{
	return driver && strstr(driver, "vfio");
}

/* Leaves the directory of the driver, to which it belongs no longer, as it is. */
static int set_driver(const char *name, const char *driver)
{
	tree_path_t path, target;
	int error;

	in_tree(path, DEVICES "%s/driver", name);
	if (!driver)
		return unless(ENOENT, unlink(path));
	in_tree(target, DRIVERS "%s", driver);
	error = make_directory(target);
	if (error)
		return error;
	snprintf(target, sizeof(target), "../../drivers/%s", driver);
	return make_link(target, path);
}

/* vfio-pci's own list of its devices. */
static int list_with_vfio(const struct device *dev, bool listed)
{
	tree_path_t path, target;

	in_tree(path, DRIVERS "vfio-pci/%s", dev->name);
	snprintf(target, sizeof(target), "../../devices/%s", dev->name);
	return listed ? make_link(target, path) : unless(ENOENT, unlink(path));
}

int tree_bind(const struct device *dev, const char *driver)
{
	int error = set_driver(dev->name, driver);

	if (!error)
		error = list_with_vfio(dev, driver && !strcmp(driver, "vfio-pci"));
	return error ? error : show_group_file(dev, driver_is_vfio(driver));
}

static int link_group(const struct device *dev, const char *name)
{
	tree_path_t path, target;

	in_tree(path, DEVICES "%s/iommu_group", name);
	snprintf(target, sizeof(target), "../../../../kernel/iommu_groups/%u", group_of(dev));
	return make_link(target, path);
}

int tree_drop_group(const struct device *dev)
{
	tree_path_t path;
	int error;

	in_tree(path, DEVICES "%s/iommu_group", dev->name);
	error = unless(ENOENT, unlink(path));
	return error ? error : show_group_file(dev, false);
}

int tree_drop_group_file(const struct device *dev)
{
	return show_group_file(dev, false);
}

/* The device is function 0 of its card, the other member function 1. */
static void member_name(const struct device *dev, char name[SIM_NAME_SIZE])
{
	memcpy(name, dev->name, SIM_NAME_SIZE);
	name[strlen(name) - 1] = '1';
}

static const struct {
	const char *file, *content;
} identity[] = {
	{ "vendor", "0x15b3\n" },
	{ "device", "0x101d\n" },
	{ "class", "0x020000\n" },
};

static int make_member(const char *name)
{
	tree_path_t path;
	int error;

	in_tree(path, DEVICES "%s", name);
	error = make_directory(path);
	for (size_t i = 0; !error && i < sizeof(identity) / sizeof(identity[0]); i++) {
		in_tree(path, DEVICES "%s/%s", name, identity[i].file);
		error = make_file(path, identity[i].content);
	}
	return error;
}

int tree_add_member(const struct device *dev, const char *driver)
{
	char name[SIM_NAME_SIZE];
	tree_path_t path, target;
	int error;

	member_name(dev, name);
	error = make_member(name);
	if (!error)
		error = link_group(dev, name);
	if (!error)
		error = set_driver(name, driver);
	if (error)
		return error;
	in_tree(path, GROUPS "%u/devices/%s", group_of(dev), name);
	snprintf(target, sizeof(target), "../../../../bus/pci/devices/%s", name);
	return make_link(target, path);
}

static void remove_member(const struct device *dev)
{
	char name[SIM_NAME_SIZE];
	tree_path_t path;

	member_name(dev, name);
	in_tree(path, GROUPS "%u/devices/%s", group_of(dev), name);
	unlink(path);
	in_tree(path, DEVICES "%s/driver", name);
	unlink(path);
	in_tree(path, DEVICES "%s/iommu_group", name);
	unlink(path);
	for (size_t i = 0; i < sizeof(identity) / sizeof(identity[0]); i++) {
		in_tree(path, DEVICES "%s/%s", name, identity[i].file);
		unlink(path);
	}
	in_tree(path, DEVICES "%s", name);
	rmdir(path);
}

bool tree_group_viable(const struct device *dev)
{
	char name[SIM_NAME_SIZE], target[128];
	tree_path_t path;
	ssize_t length;

	member_name(dev, name);
	in_tree(path, DEVICES "%s/driver", name);
	length = real()->readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return true;
	target[length] = '\0';
	return driver_is_vfio(strrchr(target, '/'));
}

/* While it is out of sight there is nothing to permit. */
int tree_permit_group(const struct device *dev, bool permit)
{
	tree_path_t path;

	in_tree(path, "dev/vfio/%u", group_of(dev));
	return unless(ENOENT, chmod(path, permit ? 0666 : 0));
}

int tree_permit_container(bool permit)
{
	tree_path_t path;

	in_tree(path, "dev/vfio/vfio");
	return unless(0, chmod(path, permit ? 0666 : 0));
}

int tree_restore(const struct device *dev)
{
	int error;

	remove_member(dev);
	error = link_group(dev, dev->name);
	if (!error)
		error = tree_bind(dev, "vfio-pci");
	if (!error)
		error = tree_permit_group(dev, true);
	return error ? error : tree_permit_container(true);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a PCI device cannot be opened through VFIO, from what sysfs, /dev/vfio and /proc tell.
 *
 * libmlx5 says nothing but an errno, and sometimes not even that. Everything here is a plain look
 * at files, made after the fact or instead of an attempt, so that it can be wrong without harm.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diagnose.h"
#include "pci.h"

#define PCI_VENDOR_MELLANOX 0x15b3
#define PCI_CLASS_BRIDGE    0x06
#define VFIO_CONTAINER      "/dev/vfio/vfio"

/* What is looked at, and where the sentence goes. */
struct subject {
	char name[PCI_NAME_SIZE];
	int group;       /* IOMMU group number, -1 if there is none */
	char device[32]; /* the group's file, /dev/vfio/N */
	char *why;
	size_t size;
};

__attribute__((format(printf, 3, 4))) static int say(const struct subject *subject, int error,
						     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(subject->why, subject->size, format, args);
	va_end(args);
	return error;
}

static bool exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* vfio-pci has variants of its own for some devices (mlx5_vfio_pci for virtual functions). */
static bool is_vfio_driver(const char *driver)
{
	return strstr(driver, "vfio") != NULL;
}

static int check_identity(const struct subject *subject)
{
	unsigned long vendor, device;

	if (!pci_exists(subject->name))
		return say(subject, -ENOENT, "there is no such PCI device");
	vendor = pci_number(subject->name, "vendor");
	device = pci_number(subject->name, "device");
	if (vendor != PCI_VENDOR_MELLANOX)
		return say(subject, -ENODEV,
			   "it is not an mlx5 device: its PCI ids are %04lx:%04lx, and only "
			   "vendor %04x has mlx5 devices",
			   vendor, device, PCI_VENDOR_MELLANOX);
	return 0;
}

static int check_driver(const struct subject *subject)
{
	char driver[64];

	pci_driver(subject->name, driver, sizeof(driver));
	if (driver[0] == '\0')
		return say(subject, -ENXIO, "it is not bound to a driver: bind it to vfio-pci");
	if (!is_vfio_driver(driver))
		return say(subject, -ENXIO,
			   "it is bound to the driver %s: unbind it and bind it to vfio-pci",
			   driver);
	return 0;
}

static int check_group_files(const struct subject *subject)
{
	char noiommu[40];

	if (subject->group < 0)
		return say(subject, -ENXIO,
			   "it is in no IOMMU group: the IOMMU is switched off in the firmware "
			   "setup or on the kernel's command line");
	if (!exists(VFIO_CONTAINER))
		return say(subject, -ENXIO,
			   "%s does not exist: the kernel module vfio is not loaded, or the "
			   "file was not passed into this container",
			   VFIO_CONTAINER);
	if (exists(subject->device))
		return 0;
	snprintf(noiommu, sizeof(noiommu), "/dev/vfio/noiommu-%d", subject->group);
	if (exists(noiommu))
		return say(subject, -ENXIO,
			   "it has no real IOMMU group (%s): VFIO runs without an IOMMU, and "
			   "libmlx5 needs one",
			   noiommu);
	return say(subject, -ENXIO,
		   "%s does not exist: the kernel module vfio-pci has no such group, or "
		   "the file was not passed into this container",
		   subject->device);
}

/* All members must be with VFIO, with pci-stub, without driver, or bridges. */
static bool spoils_group(const char *member, char *driver, size_t size)
{
	pci_driver(member, driver, size);
	return driver[0] != '\0' && !is_vfio_driver(driver) && strcmp(driver, "pci-stub") != 0 &&
	       pci_number(member, "class") >> 16 != PCI_CLASS_BRIDGE;
}

static int check_group_viable(const struct subject *subject)
{
	char path[64], driver[64], list[256] = "";
	const struct dirent *entry;
	size_t used = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%d/devices", subject->group);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)) && used < sizeof(list)) {
		if (entry->d_name[0] == '.' || !spoils_group(entry->d_name, driver, sizeof(driver)))
			continue;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s (%s)",
					 used ? ", " : "", entry->d_name, driver);
	}
	closedir(dir);
	if (used == 0)
		return 0;
	return say(subject, -ENXIO,
		   "its IOMMU group %d is not viable: these members are not bound to "
		   "vfio-pci: %s",
		   subject->group, list);
}

static int say_no_permission(const struct subject *subject, const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return say(subject, -EACCES, "there is no permission to open %s", path);
	return say(subject, -EACCES,
		   "there is no permission to open %s: mode %04o, owner %u, group %u, "
		   "and this process is user %u, group %u",
		   path, (unsigned)(st.st_mode & 07777), (unsigned)st.st_uid, (unsigned)st.st_gid,
		   (unsigned)geteuid(), (unsigned)getegid());
}

static int check_permission(const struct subject *subject)
{
	if (faccessat(AT_FDCWD, VFIO_CONTAINER, R_OK | W_OK, AT_EACCESS) != 0)
		return say_no_permission(subject, VFIO_CONTAINER);
	if (faccessat(AT_FDCWD, subject->device, R_OK | W_OK, AT_EACCESS) != 0)
		return say_no_permission(subject, subject->device);
	return 0;
}

/* True if process pid, named in decimal, has the file open, as far as /proc lets us see. */
static bool has_open(const char *pid, const char *file)
{
	char path[600], target[64];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/%s/fd/%s", pid, entry->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
		found = strcmp(target, file) == 0;
	}
	closedir(dir);
	return found;
}

/* The process that holds the group, 0 if none is seen. */
static long find_holder(const struct subject *subject)
{
	const struct dirent *entry;
	long pid = 0;
	DIR *dir;

	dir = opendir("/proc");
	if (!dir)
		return 0;
	while (!pid && (entry = readdir(dir))) {
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    has_open(entry->d_name, subject->device))
			pid = atol(entry->d_name);
	}
	closedir(dir);
	return pid;
}

static int check_holder(const struct subject *subject)
{
	long pid = find_holder(subject);
	char path[64], command[64];

	if (!pid)
		return 0;
	if (pid == (long)getpid())
		return say(subject, -EBUSY, "it is in use by this process already");
	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	pci_read_line(path, command, sizeof(command));
	return say(subject, -EBUSY, "it is in use by process %ld (%s)", pid, command);
}

/* The errno that opening a file ends with, 0 if it opens. */
static int try_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* libmlx5 says EBUSY for a group in use, and for firmware that has not started in two minutes. */
static int explain_busy(const struct subject *subject)
{
	int error = check_holder(subject);

	if (error)
		return error;
	if (try_open(subject->device) == EBUSY)
		return say(subject, -EBUSY,
			   "it is in use by another process, which /proc does not show to this "
			   "user");
	return say(subject, -EBUSY,
		   "its firmware is still initializing, or another process had it open "
		   "for a moment: try again, then reset the card");
}

static int explain_memory(const struct subject *subject)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return say(subject, -ENOMEM,
			   "memory could not be mapped for the device, although the process may "
			   "lock any amount: the system has too little");
	return say(subject, -ENOMEM,
		   "memory could not be mapped for the device: this process may lock "
		   "%llu KiB (RLIMIT_MEMLOCK, ulimit -l), and an open device takes "
		   "up to 8192",
		   (unsigned long long)limit.rlim_cur / 1024);
}

/* The files' modes permit it: what else forbids it shows only when they are opened. */
static int explain_denied(const struct subject *subject)
{
	if (try_open(VFIO_CONTAINER) != 0)
		return say_no_permission(subject, VFIO_CONTAINER);
	if (try_open(subject->device) != 0)
		return say_no_permission(subject, subject->device);
	return say(subject, -EACCES,
		   "the kernel does not permit it to be used: the platform may lack "
		   "interrupt remapping (see the kernel log)");
}

static int look_around(const struct subject *subject)
{
	int error;

	(void)((error = check_driver(subject)) || (error = check_group_files(subject)) ||
	       (error = check_group_viable(subject)) || (error = check_permission(subject)));
	return error;
}

static int explain(const struct subject *subject, int open_error)
{
	char text[64];
	int error;

	/* These come from behind everything that can be looked at, so a look could only mislead. */
	if (open_error == ETIMEDOUT)
		return say(subject, -ETIMEDOUT, "its firmware does not answer commands");
	if (open_error == ENOMEM)
		return explain_memory(subject);
	if (open_error == EBUSY && subject->group >= 0)
		return explain_busy(subject);

	error = look_around(subject);
	if (error)
		return error;
	if (open_error == EACCES || open_error == EPERM)
		return explain_denied(subject);
	if (open_error == ENODEV)
		return say(subject, -ENODEV,
			   "libmlx5 does not take it and gives no reason: it may not know the "
			   "model %04x, or the kernel module vfio_iommu_type1 may not be loaded",
			   (unsigned)pci_number(subject->name, "device"));
	if (open_error == EOPNOTSUPP)
		return say(subject, -EOPNOTSUPP, "libmlx5 does not know the flags it was given");
	return say(subject, -open_error, "libmlx5 could not open it: %s",
		   strerror_r(open_error, text, sizeof(text)));
}

int diagnose_pci(const char *pci_name, int open_error, char *why, size_t size)
{
	struct subject subject = { .why = why, .size = size };
	int error;

	if (!why)
		subject.size = 0;
	say(&subject, 0, "%s", "");
	if (!pci_name_normalise(pci_name, subject.name))
		return say(&subject, -EINVAL,
			   "the PCI name is malformed: the expected form is 0000:b0:00.0");
	error = check_identity(&subject);
	if (error)
		return error;
	subject.group = pci_iommu_group(subject.name);
	snprintf(subject.device, sizeof(subject.device), "/dev/vfio/%d", subject.group);
	if (open_error != 0)
		return explain(&subject, abs(open_error));
	error = look_around(&subject);
	return error ? error : check_holder(&subject);
}

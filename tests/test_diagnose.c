/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: none; valgrind */
/*
 * The reasons that the simulator has no command for: a system without VFIO's files, with files that
 * vanish or that somebody else guards, a /proc that shows nothing. What core/diagnose.c asks the
 * system is answered here.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"

static int world_stat(const char *path, struct stat *st);
static int world_access(const char *path);
static DIR *world_opendir(const char *path);
static int world_open(const char *path);
static int world_getrlimit(struct rlimit *limit);

#define stat(path, st)                    world_stat(path, st)
#define faccessat(dir, path, mode, flags) world_access(path)
#define opendir(path)                     world_opendir(path)
#define open(path, flags)                 world_open(path)
#define getrlimit(which, limit)           world_getrlimit(limit)

#include "../core/diagnose.c"

#undef stat
#undef faccessat
#undef opendir
#undef open
#undef getrlimit

#define NAME      "0000:b0:00.0"
#define GROUP     "/dev/vfio/10"
#define NOIOMMU   "/dev/vfio/noiommu-10"
#define ANY_STATS 100

/* A healthy device in IOMMU group 10, but for what is said here. */
struct world {
	const char *missing, *other_missing; /* files that are not there */
	bool has_noiommu;
	int stats;          /* looks at files that succeed: then they are gone */
	bool permits_none;  /* by the files' modes */
	const char *closed; /* the file that cannot be opened all the same */
	int open_error;
	const char *unreadable; /* the directories that begin with this */
	bool no_limit;          /* RLIMIT_MEMLOCK cannot be asked for */
	rlim_t memlock;
};

static struct world world;

static bool is(const char *path, const char *other)
{
	return other && !strcmp(path, other);
}

static int failed(int error)
{
	errno = error;
	return -1;
}

static int world_stat(const char *path, struct stat *st)
{
	if (is(path, world.missing) || is(path, world.other_missing) || !world.stats ||
	    (is(path, NOIOMMU) && !world.has_noiommu))
		return failed(ENOENT);
	world.stats--;
	*st = (struct stat){ .st_mode = S_IFCHR | 0640, .st_uid = 12, .st_gid = 34 };
	return 0;
}

static int world_access(const char *path)
{
	(void)path;
	return world.permits_none ? failed(EACCES) : 0;
}

static DIR *world_opendir(const char *path)
{
	if (world.unreadable && !strncmp(path, world.unreadable, strlen(world.unreadable))) {
		errno = EACCES;
		return NULL;
	}
	return opendir(strncmp(path, "/proc", 5) ? "/proc/self/task" : path);
}

static int world_open(const char *path)
{
	return is(path, world.closed) ? failed(world.open_error) : open("/dev/null", O_RDONLY);
}

static int world_getrlimit(struct rlimit *limit)
{
	limit->rlim_cur = world.memlock;
	return world.no_limit ? failed(EPERM) : 0;
}

/* core/pci.c's part. */

bool pci_name_normalise(const char *pci_name, char name[PCI_NAME_SIZE])
{
	snprintf(name, PCI_NAME_SIZE, "%s", pci_name);
	return true;
}

bool pci_exists(const char *name)
{
	return is(name, NAME);
}

unsigned long pci_number(const char *name, const char *file)
{
	(void)name;
	return is(file, "vendor") ? 0x15b3 : 0x101d;
}

void pci_driver(const char *name, char *driver, size_t size)
{
	snprintf(driver, size, "%s", is(name, NAME) ? "vfio-pci" : "");
}

int pci_iommu_group(const char *name)
{
	return is(name, NAME) ? 10 : -1;
}

void pci_read_line(const char *path, char *line, size_t size)
{
	snprintf(line, size, "%s", path);
}

#define DENIED(file) \
	"there is no permission to open " file ": mode 0640, owner 12, group 34, and this process"
#define NOT_SHOWN  "it is in use by another process, which /proc does not show to this user"
#define TOO_LITTLE "although the process may lock any amount: the system has too little"

static const struct reason {
	const char *way;
	struct world world;
	int tried; /* what opening it ended with */
	int error;
	const char *part; /* of the sentence */
} reasons[] = {
	{ "no container",
	  { .missing = VFIO_CONTAINER },
	  0,
	  ENXIO,
	  "/dev/vfio/vfio does not exist: the kernel module vfio is not loaded" },
	{ "no group", { .missing = GROUP }, 0, ENXIO, GROUP " does not exist" },
	{ "no IOMMU",
	  { .missing = GROUP, .has_noiommu = true },
	  0,
	  ENXIO,
	  "it has no real IOMMU group (" NOIOMMU "): VFIO runs without an IOMMU" },
	{ "group not readable", { .unreadable = "/sys" }, 0, 0, "" },
	{ "modes forbid it", { .permits_none = true }, 0, EACCES, DENIED(VFIO_CONTAINER) },
	{ "forbidden and gone",
	  { .permits_none = true, .stats = 2 },
	  0,
	  EACCES,
	  "there is no permission to open /dev/vfio/vfio" },
	{ "container closed",
	  { .closed = VFIO_CONTAINER, .open_error = EPERM },
	  EPERM,
	  EACCES,
	  DENIED(VFIO_CONTAINER) },
	{ "group closed",
	  { .closed = GROUP, .open_error = EACCES },
	  EACCES,
	  EACCES,
	  DENIED(GROUP) },
	{ "denied by the kernel", { 0 }, EPERM, EACCES, "the kernel does not permit it" },
	{ "/proc not readable",
	  { .unreadable = "/proc", .closed = GROUP, .open_error = EBUSY },
	  EBUSY,
	  EBUSY,
	  NOT_SHOWN },
	{ "fds not readable",
	  { .unreadable = "/proc/", .closed = GROUP, .open_error = EBUSY },
	  EBUSY,
	  EBUSY,
	  NOT_SHOWN },
	{ "free again", { 0 }, EBUSY, EBUSY, "another process had it open for a moment" },
	{ "no memory", { .memlock = RLIM_INFINITY }, ENOMEM, ENOMEM, TOO_LITTLE },
	{ "limit not known", { .no_limit = true }, ENOMEM, ENOMEM, TOO_LITTLE },
	{ "limit", { .memlock = 65536 }, ENOMEM, ENOMEM, "this process may lock 64 KiB" },
	{ "model not known", { 0 }, ENODEV, ENODEV, "it may not know the model 101d" },
	{ "flags not known", { 0 }, EOPNOTSUPP, EOPNOTSUPP, "does not know the flags" },
	{ "something else", { 0 }, EIO, EIO, "libmlx5 could not open it: Input/output error" },
};

START_TEST(reason)
{
	const struct reason *row = &reasons[_i];
	int fds = support_open_fds();
	char why[256] = "x";

	world = row->world;
	if (!world.stats)
		world.stats = ANY_STATS;
	ck_assert_int_eq(diagnose_pci(NAME, -row->tried, why, sizeof(why)), -row->error);
	ck_assert_msg(strstr(why, row->part), "%s: %s", row->way, why);
	ck_assert_msg((why[0] != '\0') == (row->error != 0), "%s: %s", row->way, why);
	ck_assert_int_eq(support_open_fds(), fds);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("diagnose");
	TCase *tcase = tcase_create("reasons");

	tcase_add_loop_test(tcase, reason, 0, (int)(sizeof(reasons) / sizeof(reasons[0])));
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of simulated file descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "device.h"
#include "engine.h"
#include "object.h"
#include "real.h"
#include "vfio.h"

enum {
	TABLE_SIZE = 1 << 20,
	HIGH_LIMIT = 1 << 19,
};

typedef _Atomic(struct object *) slot_t;

static _Atomic(slot_t *) table;

/* Every object once more, also so that leak checkers, which do not search the table, find them. */
static struct object *objects;

/* Programs that were told about no device get no table: 8 MiB of untouched address space. */
bool objects_init(void)
{
	slot_t *slots = mmap(NULL, TABLE_SIZE * sizeof(slot_t), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (slots == MAP_FAILED)
		return false;
	atomic_store(&table, slots);
	return true;
}

void objects_forget(void)
{
	atomic_store(&table, NULL);
	objects = NULL;
}

static slot_t *slot_of(int fd)
{
	slot_t *slots = atomic_load_explicit(&table, memory_order_acquire);

	return slots && fd >= 0 && fd < TABLE_SIZE ? &slots[fd] : NULL;
}

bool object_suspected(int fd)
{
	slot_t *slot = slot_of(fd);

	return slot && atomic_load_explicit(slot, memory_order_relaxed);
}

/*
 * Another thread may be about to close it, which does no harm, but a sanitizer would take a look by way
 * of the C library for a use.
 */
static bool still_ours(const struct object *object)
{
	struct stat st;

	return !syscall(SYS_fstat, object->fd, &st) && st.st_dev == object->dev &&
	       st.st_ino == object->ino;
}

static void drop_stale(struct object *object)
{
	if (object->kind != OBJECT_INTERNAL)
		vfio_release(object, false);
	object_drop(object);
}

struct object *object_find(int fd)
{
	slot_t *slot = slot_of(fd);
	struct object *object = slot ? atomic_load(slot) : NULL;

	/* A vfork child runs in our memory; what it closes is its own copy. */
	if (!object || object->pid != getpid())
		return NULL;
	if (still_ours(object))
		return object;
	drop_stale(object);
	return NULL;
}

void object_drop(struct object *object)
{
	slot_t *slot = slot_of(object->fd);
	struct object **at = &objects;

	while (*at && *at != object)
		at = &(*at)->next;
	if (*at)
		*at = object->next;
	if (slot)
		atomic_store(slot, NULL);
	free(object);
}

/* Finds what was closed behind our back, so that a device can be opened again. */
void objects_sweep(void)
{
	struct object *object, *next;

	for (object = objects; object; object = next) {
		next = object->next;
		if (object->kind != OBJECT_INTERNAL)
			object_find(object->fd);
	}
}

static struct object *object_add(enum object_kind kind, int fd)
{
	slot_t *slot = slot_of(fd);
	struct object *object, *old;
	struct stat st;

	if (!slot || fstat(fd, &st))
		return NULL;
	old = atomic_load(slot);
	if (old)
		drop_stale(old);
	object = calloc(1, sizeof(*object));
	if (!object)
		return NULL;
	*object = (struct object){ .next = objects,
				   .kind = kind,
				   .fd = fd,
				   .pid = getpid(),
				   .dev = st.st_dev,
				   .ino = st.st_ino };
	objects = object;
	atomic_store(slot, object);
	return object;
}

static int close_with(int fd, int error)
{
	real()->close(fd);
	errno = error;
	return -1;
}

int object_open_container(int flags)
{
	unsigned cloexec = flags & O_CLOEXEC ? MFD_CLOEXEC : 0;
	struct object *object;
	int fd = memfd_create(OBJECT_CONTAINER_NAME, cloexec);

	if (fd < 0)
		return -1;
	engine_lock();
	object = object_add(OBJECT_CONTAINER, fd);
	if (object)
		object->container = container_new();
	if (object && !object->container) {
		object_drop(object);
		object = NULL;
	}
	engine_unlock();
	return object ? fd : close_with(fd, ENOMEM);
}

/* The file lock makes the group exclusive among all processes of one simulator. */
static int lock_group(const char *path, int flags)
{
	int fd = real()->open(path, flags & (O_ACCMODE | O_CLOEXEC | O_NONBLOCK));

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB))
		return close_with(fd, EBUSY);
	return fd;
}

int object_open_group(unsigned device, const char *path, int flags)
{
	struct device *dev = device_at(device);
	struct object *object = NULL;
	int fd;

	if (!dev) {
		errno = ENODEV;
		return -1;
	}
	engine_lock();
	objects_sweep();
	fd = lock_group(path, flags);
	if (fd >= 0) {
		object = object_add(OBJECT_GROUP, fd);
		if (object) {
			object->device = dev;
			dev->group_fd = fd;
		}
	}
	engine_unlock();
	if (fd < 0 || object)
		return fd;
	return close_with(fd, ENOMEM);
}

int object_open_device(struct device *dev)
{
	struct object *object;
	int fd = memfd_create(OBJECT_DEVICE_NAME, MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	object = object_add(OBJECT_DEVICE, fd);
	if (!object)
		return close_with(fd, ENOMEM);
	object->device = dev;
	return fd;
}

int object_duplicate_high(int fd)
{
	struct rlimit limit;
	rlim_t base = 1024;

	if (!getrlimit(RLIMIT_NOFILE, &limit))
		base = limit.rlim_cur / 4 * 3;
	if (base > HIGH_LIMIT)
		base = HIGH_LIMIT;
	return fcntl(fd, F_DUPFD_CLOEXEC, (int)base);
}

void object_guard(int fd)
{
	object_add(OBJECT_INTERNAL, fd);
}

int object_internal(int fd)
{
	int high = object_duplicate_high(fd);

	if (high >= 0) {
		real()->close(fd);
		fd = high;
	}
	object_guard(fd);
	return fd;
}

void object_internal_close(int fd)
{
	struct object *object = object_find(fd);

	if (object)
		object_drop(object);
	real()->close(fd);
}

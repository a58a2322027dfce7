/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Simulated file descriptors. Each is a real one of the kernel; a table says what it stands for. The
 * program may close or replace an fd by means that we do not see, so a hit in the table is checked
 * against the file's identity before it is believed.
 */
#ifndef SIM_OBJECT_H
#define SIM_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define OBJECT_CONTAINER_NAME "mlx5vfio-sim-container"
#define OBJECT_DEVICE_NAME    "mlx5vfio-sim-device"

struct container;
struct device;

enum object_kind {
	OBJECT_INTERNAL, /* an fd of our own, which the program shall not close */
	OBJECT_CONTAINER,
	OBJECT_GROUP,
	OBJECT_DEVICE,
};

struct object {
	struct object *next;
	enum object_kind kind;
	int fd;
	pid_t pid;
	dev_t dev;
	ino_t ino;
	struct container *container;
	struct device *device;
};

/* Called once, with the lock held, before the first object; and in a forked child. */
bool objects_init(void);
void objects_forget(void);

/* Costs one load when fd is not ours. May be wrong either way while another thread closes it. */
bool object_suspected(int fd);

/* The rest is called with the engine's lock held, the two opens without. */
struct object *object_find(int fd);
void object_drop(struct object *object);
void objects_sweep(void);
int object_open_device(struct device *device);
int object_open_container(int flags);
int object_open_group(unsigned device, const char *path, int flags);

/* A copy out of the program's way, close-on-exec. */
int object_duplicate_high(int fd);

/* Keeps the program's close() off an fd. */
void object_guard(int fd);

/* Moves an fd of our own out of the way and guards it. Returns its new number. */
int object_internal(int fd);
void object_internal_close(int fd);

#endif

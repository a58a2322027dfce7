/* SPDX-License-Identifier: BSD-2-Clause */
/* close and ioctl: anything but a simulated fd costs one load and passes on. */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>
#include "device.h"
#include "engine.h"
#include "object.h"
#include "real.h"
#include "vfio.h"

SIM_EXPORT int close(int fd);
SIM_EXPORT int ioctl(int fd, unsigned long request, ...);

int close(int fd)
{
	struct object *object;
	int result;

	if (!object_suspected(fd))
		return real()->close(fd);
	engine_lock();
	object = object_find(fd);
	if (object && object->kind == OBJECT_INTERNAL) {
		engine_unlock();
		errno = EBADF;
		return -1;
	}
	if (object) {
		vfio_release(object, true);
		object_drop(object);
	}
	/* Under the lock: the number may be in use again as soon as it is free. */
	result = real()->close(fd);
	engine_unlock();
	return result;
}

static int object_ioctl(const struct object *object, unsigned long request, void *arg)
{
	switch (object->kind) {
	case OBJECT_CONTAINER:
		return container_ioctl(object->container, request, arg);
	case OBJECT_GROUP:
		return group_ioctl(object->device, request, arg);
	case OBJECT_DEVICE:
		return device_ioctl(object->device, request, arg);
	default:
		return -ENOTTY;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	struct object *object;
	va_list args;
	void *arg;
	int result;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!object_suspected(fd))
		return real()->ioctl(fd, request, arg);
	engine_lock();
	object = object_find(fd);
	if (!object || object->kind == OBJECT_INTERNAL) {
		engine_unlock();
		return real()->ioctl(fd, request, arg);
	}
	result = object_ioctl(object, request, arg);
	engine_unlock();
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

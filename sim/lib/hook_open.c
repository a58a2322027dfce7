/* SPDX-License-Identifier: BSD-2-Clause */
/* open and its many names: a simulated path is looked up in the tree, a /dev/vfio file becomes ours. */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include "object.h"
#include "path.h"
#include "real.h"

SIM_EXPORT int open(const char *path, int flags, ...);
SIM_EXPORT int open64(const char *path, int flags, ...);
SIM_EXPORT int openat(int dir, const char *path, int flags, ...);
SIM_EXPORT int openat64(int dir, const char *path, int flags, ...);
SIM_EXPORT int __open_2(const char *path, int flags);
SIM_EXPORT int __open64_2(const char *path, int flags);
SIM_EXPORT int __openat_2(int dir, const char *path, int flags);
SIM_EXPORT int __openat64_2(int dir, const char *path, int flags);

static int open_simulated(const struct path *at, int flags, mode_t mode)
{
	if (!path_permitted(at))
		return -1;
	if (!(flags & O_PATH) && at->kind == PATH_CONTAINER)
		return object_open_container(flags);
	if (!(flags & O_PATH) && at->kind == PATH_GROUP)
		return object_open_group(at->device, at->text, flags);
	return real()->open(at->text, flags, mode);
}

static mode_t mode_argument(int flags, va_list args)
{
	/* mode_t may be narrower than int and travels as one. */
	return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(args, unsigned) : 0;
}

static int open_any(const char *path, int flags, mode_t mode)
{
	struct path at;

	path = path_find(path, &at);
	if (at.kind == PATH_FOREIGN)
		return real()->open(path, flags, mode);
	return open_simulated(&at, flags, mode);
}

static int openat_any(int dir, const char *path, int flags, mode_t mode)
{
	struct path at;

	path = path_find(path, &at);
	if (at.kind == PATH_FOREIGN)
		return real()->openat(dir, path, flags, mode);
	return open_simulated(&at, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_argument(flags, args);
	va_end(args);
	return open_any(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_argument(flags, args);
	va_end(args);
	return open_any(path, flags | O_LARGEFILE, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_argument(flags, args);
	va_end(args);
	return openat_any(dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_argument(flags, args);
	va_end(args);
	return openat_any(dir, path, flags | O_LARGEFILE, mode);
}

int __open_2(const char *path, int flags)
{
	struct path at;

	path = path_find(path, &at);
	if (at.kind == PATH_FOREIGN)
		return real()->open_2(path, flags);
	return open_simulated(&at, flags, 0);
}

int __open64_2(const char *path, int flags)
{
	return __open_2(path, flags | O_LARGEFILE);
}

int __openat_2(int dir, const char *path, int flags)
{
	struct path at;

	path = path_find(path, &at);
	if (at.kind == PATH_FOREIGN)
		return real()->openat_2(dir, path, flags);
	return open_simulated(&at, flags, 0);
}

int __openat64_2(int dir, const char *path, int flags)
{
	return __openat_2(dir, path, flags | O_LARGEFILE);
}

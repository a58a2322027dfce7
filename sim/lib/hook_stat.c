/* SPDX-License-Identifier: BSD-2-Clause */
/* stat, access and relatives on simulated paths. */
#undef _FORTIFY_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "path.h"
#include "real.h"

static_assert(sizeof(struct stat) == sizeof(struct stat64), "one kind of struct stat");

SIM_EXPORT int stat(const char *path, struct stat *st);
SIM_EXPORT int stat64(const char *path, struct stat64 *st);
SIM_EXPORT int lstat(const char *path, struct stat *st);
SIM_EXPORT int lstat64(const char *path, struct stat64 *st);
SIM_EXPORT int fstatat(int dir, const char *path, struct stat *st, int flags);
SIM_EXPORT int fstatat64(int dir, const char *path, struct stat64 *st, int flags);
SIM_EXPORT int __xstat(int version, const char *path, struct stat *st);
SIM_EXPORT int __xstat64(int version, const char *path, struct stat64 *st);
SIM_EXPORT int __lxstat(int version, const char *path, struct stat *st);
SIM_EXPORT int __lxstat64(int version, const char *path, struct stat64 *st);
SIM_EXPORT int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
SIM_EXPORT int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);
SIM_EXPORT int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st);
SIM_EXPORT int access(const char *path, int mode);
SIM_EXPORT int eaccess(const char *path, int mode);
SIM_EXPORT int euidaccess(const char *path, int mode);
SIM_EXPORT int faccessat(int dir, const char *path, int mode, int flags);

int stat(const char *path, struct stat *st)
{
	struct path at;

	return real()->stat(path_find(path, &at), st);
}

int stat64(const char *path, struct stat64 *st)
{
	return stat(path, (struct stat *)st);
}

int lstat(const char *path, struct stat *st)
{
	struct path at;

	return real()->lstat(path_find(path, &at), st);
}

int lstat64(const char *path, struct stat64 *st)
{
	return lstat(path, (struct stat *)st);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	struct path at;

	return real()->fstatat(dir, path_find(path, &at), st, flags);
}

int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	return fstatat(dir, path, (struct stat *)st, flags);
}

/* The names of before glibc 2.33; the version says which layout, and 64-bit systems have one. */
int __xstat(int version, const char *path, struct stat *st)
{
	(void)version;
	return stat(path, st);
}

int __xstat64(int version, const char *path, struct stat64 *st)
{
	(void)version;
	return stat(path, (struct stat *)st);
}

int __lxstat(int version, const char *path, struct stat *st)
{
	(void)version;
	return lstat(path, st);
}

int __lxstat64(int version, const char *path, struct stat64 *st)
{
	(void)version;
	return lstat(path, (struct stat *)st);
}

int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
	(void)version;
	return fstatat(dir, path, st, flags);
}

int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags)
{
	(void)version;
	return fstatat(dir, path, (struct stat *)st, flags);
}

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	struct path at;

	return real()->statx(dir, path_find(path, &at), flags, mask, st);
}

static bool allowed(const struct path *at, int mode)
{
	return mode == F_OK || path_permitted(at);
}

int access(const char *path, int mode)
{
	struct path at;

	path = path_find(path, &at);
	return allowed(&at, mode) ? real()->access(path, mode) : -1;
}

int eaccess(const char *path, int mode)
{
	struct path at;

	path = path_find(path, &at);
	return allowed(&at, mode) ? real()->eaccess(path, mode) : -1;
}

int euidaccess(const char *path, int mode)
{
	return eaccess(path, mode);
}

int faccessat(int dir, const char *path, int mode, int flags)
{
	struct path at;

	path = path_find(path, &at);
	return allowed(&at, mode) ? real()->faccessat(dir, path, mode, flags) : -1;
}

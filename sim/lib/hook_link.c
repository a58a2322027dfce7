/* SPDX-License-Identifier: BSD-2-Clause */
/* Links, streams and directories on simulated paths; the link targets of simulated fds. */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "path.h"
#include "real.h"

SIM_EXPORT FILE *fopen(const char *path, const char *mode);
SIM_EXPORT FILE *fopen64(const char *path, const char *mode);
SIM_EXPORT DIR *opendir(const char *path);
SIM_EXPORT int scandir(const char *path, struct dirent ***list,
		       int (*filter)(const struct dirent *),
		       int (*order)(const struct dirent **, const struct dirent **));
SIM_EXPORT int scandir64(const char *path, struct dirent64 ***list,
			 int (*filter)(const struct dirent64 *),
			 int (*order)(const struct dirent64 **, const struct dirent64 **));
SIM_EXPORT ssize_t readlink(const char *path, char *buf, size_t size);
SIM_EXPORT ssize_t readlinkat(int dir, const char *path, char *buf, size_t size);
SIM_EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
SIM_EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t size, size_t room);
SIM_EXPORT char *realpath(const char *path, char *resolved);
SIM_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room);
SIM_EXPORT char *canonicalize_file_name(const char *path);

FILE *fopen(const char *path, const char *mode)
{
	struct path at;

	path = path_find(path, &at);
	return path_permitted(&at) ? real()->fopen(path, mode) : NULL;
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

DIR *opendir(const char *path)
{
	struct path at;

	return real()->opendir(path_find(path, &at));
}

int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
	    int (*order)(const struct dirent **, const struct dirent **))
{
	struct path at;

	return real()->scandir(path_find(path, &at), list, filter, order);
}

/* One layout on 64-bit systems. */
int scandir64(const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
	      int (*order)(const struct dirent64 **, const struct dirent64 **))
{
	return scandir(path, (struct dirent ***)list, (int (*)(const struct dirent *))filter,
		       (int (*)(const struct dirent **, const struct dirent **))order);
}

/* A name below which links to simulated fds can stand: /proc/…, or relative to a directory. */
static bool may_lead_to_fd(int dir, const char *path)
{
	if (!path)
		return false;
	return path[0] == '/' ? !strncmp(path, "/proc/", 6) : dir != AT_FDCWD;
}

/* Answers for a link to one of our fds. Returns -1 when it is none, with nothing stored. */
static ssize_t read_fd_link(int dir, const char *path, char *buf, size_t size)
{
	char target[PATH_MAX / 4], shown[64];
	const char *text;
	ssize_t len;

	if (!may_lead_to_fd(dir, path))
		return -1;
	len = real()->readlinkat(dir, path, target, sizeof(target) - 1);
	if (len <= 0)
		return -1;
	target[len] = '\0';
	text = path_of_target(target, shown, sizeof(shown));
	if (!text)
		return -1;
	if (strlen(text) < size)
		size = strlen(text);
	memcpy(buf, text, size);
	return (ssize_t)size;
}

ssize_t readlinkat(int dir, const char *path, char *buf, size_t size)
{
	int saved = errno;
	ssize_t len = read_fd_link(dir, path, buf, size);
	struct path at;

	if (len >= 0)
		return len;
	errno = saved;
	return real()->readlinkat(dir, path_find(path, &at), buf, size);
}

ssize_t readlink(const char *path, char *buf, size_t size)
{
	int saved = errno;
	ssize_t len = read_fd_link(AT_FDCWD, path, buf, size);
	struct path at;

	if (len >= 0)
		return len;
	errno = saved;
	return real()->readlink(path_find(path, &at), buf, size);
}

static void check_room(size_t size, size_t room)
{
	if (size > room)
		abort();
}

ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room)
{
	check_room(size, room);
	return readlink(path, buf, size);
}

ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t size, size_t room)
{
	check_room(size, room);
	return readlinkat(dir, path, buf, size);
}

char *realpath(const char *path, char *resolved)
{
	struct path at;
	char shown[sizeof(at.text)];
	char *result = real()->realpath(path_find(path, &at), resolved);

	if (result && at.kind != PATH_FOREIGN && path_of_target(result, shown, sizeof(shown)))
		memcpy(result, shown, strlen(shown) + 1);
	return result;
}

char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	check_room(PATH_MAX, room);
	return realpath(path, resolved);
}

char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

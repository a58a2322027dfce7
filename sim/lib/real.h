/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of the C library (or of the next preload library) behind the ones we put over them. */
#ifndef SIM_REAL_H
#define SIM_REAL_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>

#define SIM_EXPORT __attribute__((visibility("default")))

struct real {
	int (*open)(const char *path, int flags, ...);
	int (*open_2)(const char *path, int flags);
	int (*openat)(int dir, const char *path, int flags, ...);
	int (*openat_2)(int dir, const char *path, int flags);
	FILE *(*fopen)(const char *path, const char *mode);
	DIR *(*opendir)(const char *path);
	int (*scandir)(const char *path, struct dirent ***list,
		       int (*filter)(const struct dirent *),
		       int (*order)(const struct dirent **, const struct dirent **));
	int (*close)(int fd);
	int (*ioctl)(int fd, unsigned long request, ...);
	int (*stat)(const char *path, struct stat *st);
	int (*lstat)(const char *path, struct stat *st);
	int (*fstatat)(int dir, const char *path, struct stat *st, int flags);
	int (*statx)(int dir, const char *path, int flags, unsigned mask, struct statx *st);
	int (*access)(const char *path, int mode);
	int (*eaccess)(const char *path, int mode);
	int (*faccessat)(int dir, const char *path, int mode, int flags);
	ssize_t (*readlink)(const char *path, char *buf, size_t size);
	ssize_t (*readlinkat)(int dir, const char *path, char *buf, size_t size);
	char *(*realpath)(const char *path, char *resolved);
	int (*clock_gettime)(clockid_t id, struct timespec *ts);
	int (*nanosleep)(const struct timespec *time, struct timespec *left);
	int (*usleep)(useconds_t us);
};

const struct real *real(void);

/* True once real() answers without looking anything up. */
bool real_ready(void);

#endif

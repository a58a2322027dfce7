/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for functions of libc; included by a test program, because it must
 * come before libc in nothing but that program. The sanitizers stand in for
 * some of them as well: theirs come next.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mlx5vfio/core.h>

#include "inject.h"

enum {
	LINES = 16,
};

/* Runs before AddressSanitizer has prepared itself, which allocates while it
 * does. */
#define EARLY __attribute__((no_sanitize("address", "undefined")))

/* Whom the memory comes from: AddressSanitizer where there is one, else libc.
 */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__interceptor_malloc(size_t size) __attribute__((weak));
extern void *__interceptor_calloc(size_t count, size_t size) __attribute__((weak));
extern void *__interceptor_realloc(void *old, size_t size) __attribute__((weak));
extern int __interceptor_posix_memalign(void **memory, size_t align, size_t size)
	__attribute__((weak));
extern int __interceptor_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
					void *(*start)(void *), void *arg) __attribute__((weak));

ssize_t __getdelim(char **line, size_t *room, int end, FILE *file);

static _Thread_local struct {
	bool armed;
	bool looking; /* inside inject_enter() */
	enum inject_whose whose;
	unsigned number, passed, lines;
	unsigned depth; /* functions on the stack whose own calls count */
	const char *failed;
} injection;

void inject_arm(unsigned number, enum inject_whose whose)
{
	injection.number = number;
	injection.whose = whose;
	injection.passed = injection.lines = 0;
	injection.depth = 0;
	injection.failed = NULL;
	injection.armed = true;
}

void inject_disarm(void)
{
	injection.armed = false;
}

const char *inject_failed(void)
{
	return injection.failed;
}

/* Programs linked statically have the library in themselves, together with the
 * test. */
static bool is_ours(const Dl_info *caller)
{
	int (*here)(struct mlx5vfio *, int, int) = mlx5vfio_process;
	const void *address;
	Dl_info ours;

	if (strstr(caller->dli_fname, "libmlx5vfio"))
		return true;
	memcpy(&address, &here, sizeof(address));
	return dladdr(address, &ours) && ours.dli_fbase == caller->dli_fbase;
}

/* libuv abort()s when the table of what it watches cannot grow. */
static bool ends_the_process(const char *name, const Dl_info *caller)
{
	return !strcmp(name, "realloc") && strstr(caller->dli_fname, "/libuv.so");
}

/* What reads line by line has the same call hundreds of times: the first few stand for all. */
static bool is_one_of_many(const char *name)
{
	static const char *const readers[] = { "__getdelim", "fgets", "readdir", "readlink" };

	for (unsigned i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		if (!strcmp(name, readers[i]))
			return ++injection.lines > LINES;
	return false;
}

/* The simulator is not what is tested: a kernel does not run out of the
 * program's memory. */
static bool counts(const char *name, const void *caller)
{
	Dl_info info;

	if (!dladdr(caller, &info) || strstr(info.dli_fname, "libmlx5vfio-sim"))
		return false;
	if (is_ours(&info))
		return true;
	if (injection.whose == INJECT_OURS || ends_the_process(name, &info))
		return false;
	if (injection.whose == INJECT_COMMANDS && !strcmp(name, "read"))
		return false;
	return injection.depth || strstr(info.dli_fname, "/libmlx5.so") ||
	       strstr(info.dli_fname, "/libibverbs.so");
}

EARLY static struct injected enter(const char *name, const void *caller)
{
	struct injected call = { false, false };

	if (!injection.armed || injection.looking)
		return call;
	injection.looking = true;
	call.outer = counts(name, caller) && !is_one_of_many(name);
	injection.looking = false;
	if (!call.outer)
		return call;
	injection.passed++;
	call.fails = injection.passed == injection.number;
	if (call.fails)
		injection.failed = name;
	injection.depth++;
	return call;
}

struct injected inject_enter(const char *name, void *next, const void *caller)
{
	void *function = dlsym(RTLD_NEXT, name);

	memcpy(next, &function, sizeof(function));
	return enter(name, caller);
}

EARLY void inject_leave(struct injected call)
{
	if (call.outer)
		injection.depth--;
}

/* Allocations come before dlsym() can be used. */
EARLY void *malloc(size_t size)
{
	struct injected call = enter("malloc", __builtin_return_address(0));
	void *memory = NULL;

	if (call.fails)
		errno = ENOMEM;
	else
		memory = __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
	inject_leave(call);
	return memory;
}

EARLY void *calloc(size_t count, size_t size)
{
	struct injected call = enter("calloc", __builtin_return_address(0));
	void *memory = NULL;

	if (call.fails)
		errno = ENOMEM;
	else if (__interceptor_calloc)
		memory = __interceptor_calloc(count, size);
	else
		memory = __libc_calloc(count, size);
	inject_leave(call);
	return memory;
}

EARLY void *realloc(void *old, size_t size)
{
	struct injected call = enter("realloc", __builtin_return_address(0));
	void *memory = NULL;

	if (call.fails)
		errno = ENOMEM;
	else if (__interceptor_realloc)
		memory = __interceptor_realloc(old, size);
	else
		memory = __libc_realloc(old, size);
	inject_leave(call);
	return memory;
}

int posix_memalign(void **memory, size_t align, size_t size)
{
	int (*next)(void **, size_t, size_t);
	struct injected call = inject_enter("posix_memalign", &next, __builtin_return_address(0));
	int err = ENOMEM;

	if (__interceptor_posix_memalign)
		next = __interceptor_posix_memalign;
	if (!call.fails)
		err = next(memory, align, size);
	inject_leave(call);
	return err;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct injected call = inject_enter("pthread_create", &next, __builtin_return_address(0));
	int err = EAGAIN;

	if (__interceptor_pthread_create)
		next = __interceptor_pthread_create;
	if (!call.fails)
		err = next(thread, attr, start, arg);
	inject_leave(call);
	return err;
}

int pthread_attr_init(pthread_attr_t *attr)
{
	int (*next)(pthread_attr_t *);
	struct injected call =
		inject_enter("pthread_attr_init", &next, __builtin_return_address(0));
	int err = call.fails ? ENOMEM : next(attr);

	inject_leave(call);
	return err;
}

/* -1 with errno, for the calls that fail so. */
static int refuse(int error)
{
	errno = error;
	return -1;
}

int eventfd(unsigned count, int flags)
{
	int (*next)(unsigned, int);
	struct injected call = inject_enter("eventfd", &next, __builtin_return_address(0));
	int fd = call.fails ? refuse(EMFILE) : next(count, flags);

	inject_leave(call);
	return fd;
}

int eventfd_read(int fd, eventfd_t *value)
{
	int (*next)(int, eventfd_t *);
	struct injected call = inject_enter("eventfd_read", &next, __builtin_return_address(0));
	int err = call.fails ? refuse(EIO) : next(fd, value);

	inject_leave(call);
	return err;
}

int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...);
	struct injected call = inject_enter("open", &next, __builtin_return_address(0));
	va_list args;
	int fd;

	va_start(args, flags);
	fd = call.fails ? refuse(EMFILE) : next(path, flags, va_arg(args, mode_t));
	va_end(args);
	inject_leave(call);
	return fd;
}

int fcntl(int fd, int command, ...)
{
	int (*next)(int, int, ...);
	struct injected call = inject_enter("fcntl", &next, __builtin_return_address(0));
	va_list args;
	int ret;

	va_start(args, command);
	/* To ask for flags fails for an fd that is closed, and for no other reason.
   */
	if (call.fails && command != F_GETFD)
		ret = refuse(EMFILE);
	else
		ret = next(fd, command, va_arg(args, void *));
	va_end(args);
	inject_leave(call);
	return ret;
}

int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, ...);
	struct injected call = inject_enter("ioctl", &next, __builtin_return_address(0));
	va_list args;
	int ret;

	va_start(args, request);
	/* The kernel never fails to take a mapping back. */
	if (call.fails && request != VFIO_IOMMU_UNMAP_DMA)
		ret = refuse(ENOMEM);
	else
		ret = next(fd, request, va_arg(args, void *));
	va_end(args);
	inject_leave(call);
	return ret;
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	int (*next)(int, int, int, struct epoll_event *);
	struct injected call = inject_enter("epoll_ctl", &next, __builtin_return_address(0));
	int ret;

	/* The kernel never fails to let go of an fd that it has. */
	if (call.fails && operation != EPOLL_CTL_DEL)
		ret = refuse(ENOSPC);
	else
		ret = next(epoll, operation, fd, event);
	inject_leave(call);
	return ret;
}

ssize_t read(int fd, void *buffer, size_t size)
{
	ssize_t (*next)(int, void *, size_t);
	struct injected call = inject_enter("read", &next, __builtin_return_address(0));
	ssize_t got = call.fails ? refuse(EIO) : next(fd, buffer, size);

	inject_leave(call);
	return got;
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	ssize_t (*next)(int, void *, size_t, off_t);
	struct injected call = inject_enter("pread", &next, __builtin_return_address(0));
	ssize_t got = call.fails ? refuse(EIO) : next(fd, buffer, size, offset);

	inject_leave(call);
	return got;
}

ssize_t readlink(const char *path, char *buffer, size_t size)
{
	ssize_t (*next)(const char *, char *, size_t);
	struct injected call = inject_enter("readlink", &next, __builtin_return_address(0));
	ssize_t got = call.fails ? refuse(EACCES) : next(path, buffer, size);

	inject_leave(call);
	return got;
}

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *, const char *);
	struct injected call = inject_enter("fopen", &next, __builtin_return_address(0));
	FILE *file = NULL;

	if (call.fails)
		errno = EMFILE;
	else
		file = next(path, mode);
	inject_leave(call);
	return file;
}

char *fgets(char *line, int size, FILE *file)
{
	char *(*next)(char *, int, FILE *);
	struct injected call = inject_enter("fgets", &next, __builtin_return_address(0));
	char *got = call.fails ? NULL : next(line, size, file);

	inject_leave(call);
	return got;
}

/* What getline() is made of. */
ssize_t __getdelim(char **line, size_t *room, int end, FILE *file)
{
	ssize_t (*next)(char **, size_t *, int, FILE *);
	struct injected call = inject_enter("__getdelim", &next, __builtin_return_address(0));
	ssize_t got = call.fails ? refuse(ENOMEM) : next(line, room, end, file);

	inject_leave(call);
	return got;
}

DIR *opendir(const char *path)
{
	DIR *(*next)(const char *);
	struct injected call = inject_enter("opendir", &next, __builtin_return_address(0));
	DIR *dir = NULL;

	if (call.fails)
		errno = EMFILE;
	else
		dir = next(path);
	inject_leave(call);
	return dir;
}

struct dirent *readdir(DIR *dir)
{
	struct dirent *(*next)(DIR *);
	struct injected call = inject_enter("readdir", &next, __builtin_return_address(0));
	struct dirent *entry = call.fails ? NULL : next(dir);

	inject_leave(call);
	return entry;
}

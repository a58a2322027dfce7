/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up what our functions stand in front of. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include "real.h"

static struct real found;
static atomic_bool complete;

static void look_up(void *slot, const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	memcpy(slot, &function, sizeof(function));
}

/*
 * Constructors of other libraries run before ours and call us: whoever comes first looks up. Two at
 * once store the same values.
 */
static void look_up_all(void)
{
	look_up(&found.open, "open");
	look_up(&found.open_2, "__open_2");
	look_up(&found.openat, "openat");
	look_up(&found.openat_2, "__openat_2");
	look_up(&found.fopen, "fopen");
	look_up(&found.opendir, "opendir");
	look_up(&found.scandir, "scandir");
	look_up(&found.close, "close");
	look_up(&found.ioctl, "ioctl");
	look_up(&found.stat, "stat");
	look_up(&found.lstat, "lstat");
	look_up(&found.fstatat, "fstatat");
	look_up(&found.statx, "statx");
	look_up(&found.access, "access");
	look_up(&found.eaccess, "eaccess");
	look_up(&found.faccessat, "faccessat");
	look_up(&found.readlink, "readlink");
	look_up(&found.readlinkat, "readlinkat");
	look_up(&found.realpath, "realpath");
	look_up(&found.clock_gettime, "clock_gettime");
	look_up(&found.nanosleep, "nanosleep");
	look_up(&found.usleep, "usleep");
	atomic_store_explicit(&complete, true, memory_order_release);
}

bool real_ready(void)
{
	return atomic_load_explicit(&complete, memory_order_acquire);
}

const struct real *real(void)
{
	if (!real_ready())
		look_up_all();
	return &found;
}

__attribute__((constructor)) static void look_up_early(void)
{
	look_up_all();
}

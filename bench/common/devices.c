/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulated devices and clocks. Included by each program, once. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <mlx5vfio/core.h>

#include "mlx5vfio_sim.h"

/* Ends the program with errno's text unless ok. */
static void require(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void device_control(const char *format, ...)
{
	char line[64], reply[256];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	require(mlx5vfio_sim_present() && !mlx5vfio_sim_control(line, reply, sizeof(reply)), line);
}

static void device_name(unsigned dev, char *name, size_t size)
{
	snprintf(name, size, "%04x:%02x:00.0", (0xb0 + dev) >> 8, (0xb0 + dev) & 0xff);
}

/* Simulated device number dev, opened by our library: the guard knows its past. */
static struct ibv_context *device_open(unsigned dev)
{
	struct ibv_context *ctx;
	char name[32], why[256];

	device_name(dev, name, sizeof(name));
	ctx = mlx5vfio_open(name, 0, why, sizeof(why));
	require(ctx != NULL, why);
	return ctx;
}

static int (*libc_clock_gettime)(clockid_t clock, struct timespec *now);
static int (*libc_gettimeofday)(struct timeval *now, void *zone);

static void find_symbol(void *library, const char *name, void *function)
{
	void *symbol = dlsym(library, name);

	require(symbol != NULL, name);
	memcpy(function, &symbol, sizeof(symbol));
}

static void __attribute__((constructor)) find_clocks(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY);

	require(libc != NULL, "libc.so.6");
	find_symbol(libc, "clock_gettime", (void *)&libc_clock_gettime);
	find_symbol(libc, "gettimeofday", (void *)&libc_gettimeofday);
}

/*
 * The simulator stands before the C library's clocks, so that time can be stepped. That costs twice
 * the reading itself, where a program on a real device pays nothing: here it is passed by.
 */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	return libc_clock_gettime(clock, now);
}

int gettimeofday(struct timeval *now, void *zone)
{
	return libc_gettimeofday(now, zone);
}

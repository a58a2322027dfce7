/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the environment once; the program may change it later. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include "../common/naming.h"
#include "settings.h"

static struct settings current;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool copy_variable(const char *name, char *to, size_t size)
{
	const char *value = getenv(name);

	if (!value || !*value || strlen(value) >= size)
		return false;
	memcpy(to, value, strlen(value) + 1);
	return true;
}

static uint64_t number_variable(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static void read_environment(void)
{
	uint64_t devices = number_variable(SIM_ENV_DEVICES, 1);

	/* A set-uid program must not be steered by its caller's environment. */
	if (getauxval(AT_SECURE))
		return;
	if (!copy_variable(SIM_ENV_DIR, current.dir, sizeof(current.dir)))
		return;
	if (!copy_variable(SIM_ENV_SOCKET, current.socket, sizeof(current.socket)))
		current.socket[0] = '\0';
	if (!copy_variable(SIM_ENV_FAULTS, current.faults, sizeof(current.faults)))
		current.faults[0] = '\0';
	current.devices = devices < SIM_MAX_DEVICES ? (unsigned)devices : SIM_MAX_DEVICES;
	current.seed = number_variable(SIM_ENV_SEED, 1);
	current.report = number_variable(SIM_ENV_REPORT, 0) != 0;
	current.maps_offset = number_variable(SIM_ENV_MAPS_OFFSET, 0) != 0;
	current.infiniband = number_variable(SIM_ENV_INFINIBAND, 0) != 0;
	current.active = true;
}

const struct settings *settings(void)
{
	pthread_once(&once, read_environment);
	return &current;
}

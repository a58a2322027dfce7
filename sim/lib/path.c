/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells simulated paths from the rest. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "../common/naming.h"
#include "engine.h"
#include "object.h"
#include "path.h"
#include "real.h"
#include "settings.h"

/* Most names are decided by their first letters, without a call. */
static bool may_be_ours(const char *name)
{
	if (!name || name[0] != '/')
		return false;
	while (*name == '/')
		name++;
	return !strncmp(name, "dev/", 4) || !strncmp(name, "sys/", 4);
}

/* Copies name with single slashes and without "." components. */
static bool tidy(const char *name, char *to, size_t size)
{
	size_t n = 0;

	while (*name) {
		size_t len;

		while (*name == '/')
			name++;
		len = strcspn(name, "/");
		if (len == 1 && *name == '.')
			len = 0;
		if (n + len + 2 > size)
			return false;
		if (len || !*name)
			to[n++] = '/';
		memcpy(to + n, name, len);
		n += len;
		name += strcspn(name, "/");
	}
	to[n] = '\0';
	return true;
}

/* Returns what follows prefix in name when prefix ends at a component, else NULL. */
static const char *below(const char *name, const char *prefix)
{
	while (*prefix && *name == *prefix) {
		name++;
		prefix++;
	}
	if (*prefix)
		return NULL;
	if (*name == '/')
		return name + 1;
	return *name ? NULL : name;
}

/* Parses the decimal number that is the first component of text. */
static bool number_component(const char *text, unsigned *number)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)*text))
		return false;
	value = strtoul(text, &end, 10);
	if ((*end && *end != '/') || value > 1000000)
		return false;
	*number = (unsigned)value;
	return true;
}

static bool simulated_group(unsigned group)
{
	return group == SIM_OTHER_GROUP ||
	       (group >= SIM_FIRST_GROUP && group < SIM_FIRST_GROUP + settings()->devices);
}

/* A second function of the card may be there as another member of the group. */
static bool simulated_name(const char *text)
{
	size_t len = strcspn(text, "/");
	char name[SIM_NAME_SIZE];

	if (len != strlen(SIM_OTHER_NAME))
		return false;
	if (!strncasecmp(text, SIM_OTHER_NAME, len))
		return true;
	for (unsigned i = 0; i < settings()->devices; i++) {
		sim_device_name(i, name);
		if (!strncasecmp(text, name, len - 1) && strchr("01", text[len - 1]))
			return true;
	}
	return false;
}

static enum path_kind kind_below_vfio(const char *rest, struct path *at)
{
	unsigned group;
	char *end;

	if (!strcmp(rest, "vfio"))
		return PATH_CONTAINER;
	if (!number_component(rest, &group))
		return PATH_FILE;
	strtoul(rest, &end, 10);
	if (*end || group < SIM_FIRST_GROUP || !simulated_group(group))
		return PATH_FILE;
	at->device = group - SIM_FIRST_GROUP;
	return PATH_GROUP;
}

static enum path_kind kind_of(char *name, struct path *at)
{
	const char *rest;
	unsigned group;

	rest = below(name, "/dev/vfio");
	if (rest)
		return kind_below_vfio(rest, at);
	rest = below(name, "/sys/bus/pci/devices");
	if (rest && simulated_name(rest)) {
		for (size_t i = 0; rest[i] && rest[i] != '/'; i++)
			name[rest - name + (ptrdiff_t)i] = (char)tolower((unsigned char)rest[i]);
		return PATH_FILE;
	}
	rest = below(name, "/sys/kernel/iommu_groups");
	if (rest && number_component(rest, &group) && simulated_group(group))
		return PATH_FILE;
	return below(name, "/sys/bus/pci/drivers/vfio-pci") ? PATH_FILE : PATH_FOREIGN;
}

const char *path_find(const char *name, struct path *at)
{
	char tidied[300];

	at->kind = PATH_FOREIGN;
	if (!may_be_ours(name) || !settings()->active || !tidy(name, tidied, sizeof(tidied)))
		return name;
	at->kind = kind_of(tidied, at);
	if (at->kind == PATH_FOREIGN)
		return name;
	snprintf(at->text, sizeof(at->text), "%s%s", settings()->dir, tidied);
	engine_start();
	return at->text;
}

bool path_permitted(const struct path *at)
{
	struct stat st;

	if (at->kind == PATH_FOREIGN || real()->stat(at->text, &st) || st.st_mode & 0777)
		return true;
	errno = EACCES;
	return false;
}

const char *path_of_target(const char *target, char *buf, size_t size)
{
	size_t len = strlen(settings()->dir);

	if (!settings()->active)
		return NULL;
	if (!strcmp(target, "/memfd:" OBJECT_CONTAINER_NAME " (deleted)"))
		return "/dev/vfio/vfio";
	if (!strcmp(target, "/memfd:" OBJECT_DEVICE_NAME " (deleted)"))
		return "anon_inode:[vfio-device]";
	if (strncmp(target, settings()->dir, len) || target[len] != '/')
		return NULL;
	snprintf(buf, size, "%s", target + len);
	return buf;
}

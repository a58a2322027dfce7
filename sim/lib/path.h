/* SPDX-License-Identifier: BSD-2-Clause */
/* Which paths are simulated, and where they are found in the file tree. */
#ifndef SIM_PATH_H
#define SIM_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum path_kind {
	PATH_FOREIGN,
	PATH_FILE,      /* a file or directory of the tree, nothing more */
	PATH_CONTAINER, /* /dev/vfio/vfio */
	PATH_GROUP,     /* /dev/vfio/N of a simulated device */
};

struct path {
	enum path_kind kind;
	unsigned device; /* with PATH_GROUP */
	char text[640];
};

/*
 * Returns name itself, untouched, or at->text when name is simulated. The first simulated name
 * starts the engine.
 */
const char *path_find(const char *name, struct path *at);

/* No permission bit at all means no, for root too. False with errno EACCES. */
bool path_permitted(const struct path *at);

/* What a kernel would show for one of our link targets; NULL when it is none of ours. */
const char *path_of_target(const char *target, char *buf, size_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What mlx5vfio_open() found out about a ctx, until it is attached. A program may close such a ctx
 * without telling us, and the next one may then have its address and its fd number; it is told
 * apart by the events fd itself, of which we keep a duplicate.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opened.h"

struct opened {
	struct ibv_context *ctx;
	int events_fd;
	int same_fd; /* keeps the eventfd's id from being given to another */
	struct vfio_notices notices;
	struct opened *next;
};

static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *opened_head;

/* The kernel's number of an eventfd, of which there is no second while it exists; -1 if unknown. */
static long eventfd_id(int fd)
{
	char path[64], line[128];
	long id = -1;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	if (!info)
		return -1;
	while (id < 0 && fgets(line, sizeof(line), info))
		if (!strncmp(line, "eventfd-id:", 11))
			id = strtol(line + 11, NULL, 10);
	fclose(info);
	return id;
}

static bool still_open(const struct opened *opened)
{
	long id = eventfd_id(opened->same_fd);

	return id >= 0 && eventfd_id(opened->events_fd) == id;
}

static void opened_free(struct opened *opened)
{
	vfio_notices_close(&opened->notices);
	close(opened->same_fd);
	free(opened);
}

/* Those that were closed without an attach end here. */
static void sweep(void)
{
	struct opened **link = &opened_head;

	while (*link) {
		struct opened *opened = *link;

		if (still_open(opened)) {
			link = &opened->next;
			continue;
		}
		*link = opened->next;
		opened_free(opened);
	}
}

static struct opened *opened_new(struct ibv_context *ctx, int events_fd)
{
	struct opened *opened = calloc(1, sizeof(*opened));

	if (!opened)
		return NULL;
	opened->ctx = ctx;
	opened->events_fd = events_fd;
	opened->same_fd = fcntl(events_fd, F_DUPFD_CLOEXEC, 0);
	if (opened->same_fd >= 0)
		return opened;
	free(opened);
	return NULL;
}

void opened_add(struct ibv_context *ctx, int events_fd, struct vfio_notices notices)
{
	struct opened *opened = opened_new(ctx, events_fd);

	if (!opened) {
		vfio_notices_close(&notices);
		return;
	}
	opened->notices = notices;
	pthread_mutex_lock(&opened_lock);
	sweep();
	opened->next = opened_head;
	opened_head = opened;
	pthread_mutex_unlock(&opened_lock);
}

bool opened_take(struct ibv_context *ctx, int events_fd, struct vfio_notices *notices)
{
	struct opened **link;
	struct opened *opened;

	*notices = (struct vfio_notices){ -1, -1 };
	pthread_mutex_lock(&opened_lock);
	sweep();
	link = &opened_head;
	while (*link && ((*link)->ctx != ctx || (*link)->events_fd != events_fd))
		link = &(*link)->next;
	opened = *link;
	if (opened)
		*link = opened->next;
	pthread_mutex_unlock(&opened_lock);
	if (!opened)
		return false;
	*notices = opened->notices;
	opened->notices = (struct vfio_notices){ -1, -1 };
	opened_free(opened);
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening takes minutes when firmware does not answer. It has a thread of its own, not one of
 * libuv's four workers: four sick devices would stop every fs call of the process.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "addon.h"

enum verdict { VERDICT_NONE, VERDICT_TAKEN, VERDICT_GIVEN_BACK };

struct opening {
	struct device *device;
	uv_async_t done;
	char pci_name[32];

	pthread_mutex_t lock;
	pthread_cond_t judged;
	struct ibv_context *ctx;
	int error;
	char why[512];
	enum verdict verdict; /* the loop's, on the ctx */
	unsigned users;       /* the thread and the loop */
};

static void opening_put(struct opening *opening)
{
	unsigned users;

	pthread_mutex_lock(&opening->lock);
	users = --opening->users;
	pthread_mutex_unlock(&opening->lock);
	if (users)
		return;
	pthread_cond_destroy(&opening->judged);
	pthread_mutex_destroy(&opening->lock);
	free(opening);
}

/*
 * The loop may be gone by now. Until it has taken the ctx the thread answers for it, so that there
 * is one place only where nobody wants it.
 */
static bool offer(struct opening *opening, struct ibv_context *ctx, int error)
{
	bool wanted;

	pthread_mutex_lock(&opening->lock);
	opening->ctx = ctx;
	opening->error = error;
	if (opening->verdict == VERDICT_NONE)
		uv_async_send(&opening->done);
	while (ctx && opening->verdict == VERDICT_NONE)
		pthread_cond_wait(&opening->judged, &opening->lock);
	wanted = opening->verdict != VERDICT_GIVEN_BACK;
	pthread_mutex_unlock(&opening->lock);
	return wanted;
}

static void *opening_main(void *arg)
{
	struct opening *opening = arg;
	struct ibv_context *ctx;

	ctx = mlx5vfio_open(opening->pci_name, 0, opening->why, sizeof(opening->why));
	if (!offer(opening, ctx, ctx ? 0 : -errno) && ctx)
		ibv_close_device(ctx);
	opening_put(opening);
	return NULL;
}

/* A signal that is handled by this thread would fail the command that it waits for. */
static int start_thread(struct opening *opening)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, opening_main, opening);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

static void on_done_closed(uv_handle_t *handle)
{
	struct opening *opening = handle->data;
	struct device *device = opening->device;

	opening_put(opening);
	if (!device)
		return;
	device->opening = NULL;
	device_gone(device);
}

/* The first word counts. Under the lock, because afterwards the thread must not touch the loop. */
static void judge(struct opening *opening, enum verdict verdict)
{
	pthread_mutex_lock(&opening->lock);
	if (opening->verdict == VERDICT_NONE)
		opening->verdict = verdict;
	pthread_cond_signal(&opening->judged);
	pthread_mutex_unlock(&opening->lock);
}

static void on_done(uv_async_t *done)
{
	struct opening *opening = done->data;
	struct device *device = opening->device;
	struct ibv_context *ctx;
	int error;

	pthread_mutex_lock(&opening->lock);
	ctx = opening->ctx;
	error = opening->error;
	pthread_mutex_unlock(&opening->lock);
	if (ctx) {
		error = device_opened(device, ctx);
		judge(opening, error ? VERDICT_GIVEN_BACK : VERDICT_TAKEN);
	}
	uv_close((uv_handle_t *)done, on_done_closed);
	device_announce(device, error, ctx ? "it opens but cannot be attached" : opening->why);
}

void opening_abandon(struct opening *opening)
{
	judge(opening, VERDICT_GIVEN_BACK);
	if (!uv_is_closing((uv_handle_t *)&opening->done))
		uv_close((uv_handle_t *)&opening->done, on_done_closed);
}

int opening_start(struct device *device, const char *pci_name)
{
	struct opening *opening = calloc(1, sizeof(*opening));
	int err;

	if (!opening)
		return -ENOMEM;
	err = uv_async_init(device->environment->loop, &opening->done, on_done);
	if (err) {
		free(opening);
		return err;
	}
	opening->done.data = opening;
	opening->device = device;
	snprintf(opening->pci_name, sizeof(opening->pci_name), "%s", pci_name);
	pthread_mutex_init(&opening->lock, NULL);
	pthread_cond_init(&opening->judged, NULL);
	opening->users = 2;
	err = start_thread(opening);
	if (!err) {
		device->opening = opening;
		return 0;
	}
	opening->users = 1;
	opening->device = NULL;
	uv_close((uv_handle_t *)&opening->done, on_done_closed);
	return err;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a JavaScript thread: natural, process.exit() in a worker, terminate(). Node runs the
 * loop until the cleanup hook is removed and then aborts the process if a handle is left in a
 * worker's loop. (process.exit() on the main thread ends the process without any of this; the
 * kernel closes the devices then.)
 */
#include <stdlib.h>

#include "addon.h"

/* A healthy device closes in a fraction of this. */
#define PATIENCE_MS 1000

static void on_patience_closed(uv_handle_t *timer)
{
	const struct environment *environment = timer->data;

	napi_remove_async_cleanup_hook(environment->hook);
}

static void on_patience(uv_timer_t *timer)
{
	const struct environment *environment = timer->data;
	struct device *device;

	for (device = environment->devices; device; device = device->next)
		device_drop(device);
}

static void finish_when_empty(struct environment *environment)
{
	if (!environment->devices)
		uv_close((uv_handle_t *)&environment->patience, on_patience_closed);
}

/* Whoever opens a device again that a worker had should find it closed, so this waits a little. */
static void on_cleanup(napi_async_cleanup_hook_handle hook, void *arg)
{
	struct environment *environment = arg;
	struct device *device;

	(void)hook;
	environment->ending = true;
	uv_timer_init(environment->loop, &environment->patience);
	environment->patience.data = environment;
	uv_update_time(environment->loop);
	uv_timer_start(&environment->patience, on_patience, PATIENCE_MS, 0);
	for (device = environment->devices; device; device = device->next)
		device_end(device);
	finish_when_empty(environment);
}

static void on_finalize(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)hint;
	free(data);
}

struct environment *environment_new(napi_env env)
{
	struct environment *environment = calloc(1, sizeof(*environment));

	if (!environment)
		return NULL;
	environment->env = env;
	if (napi_get_uv_event_loop(env, &environment->loop) ||
	    napi_set_instance_data(env, environment, on_finalize, NULL)) {
		free(environment);
		return NULL;
	}
	if (napi_add_async_cleanup_hook(env, on_cleanup, environment, &environment->hook))
		return NULL;
	return environment;
}

void environment_add(struct environment *environment, struct device *device)
{
	device->next = environment->devices;
	environment->devices = device;
}

void environment_remove(struct environment *environment, struct device *device)
{
	struct device **link = &environment->devices;

	while (*link != device)
		link = &(*link)->next;
	*link = device->next;
	if (environment->ending)
		finish_when_empty(environment);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The addon between its files. An environment is one JavaScript thread: the main one or a worker. */
#ifndef ADDON_H
#define ADDON_H

#include <node_api.h>
#include <stdbool.h>
#include <uv.h>

#include <mlx5vfio/eq.h>
#include <mlx5vfio/uv.h>

struct device;
struct opening;

struct environment {
	napi_env env;
	uv_loop_t *loop; /* Node's */
	napi_async_cleanup_hook_handle hook;
	struct device *devices;
	uv_timer_t patience; /* runs only at the end */
	bool ending;         /* JavaScript can no longer be called */
};

/*
 * What JavaScript holds of a device. Either may go first: the device with its close, the handle
 * with the garbage collector or the environment.
 */
struct handle {
	struct device *device;
};

struct device {
	struct environment *environment;
	struct device *next;
	struct handle *handle;
	struct opening *opening; /* NULL once the device is open */
	struct mlx5vfio *dev;    /* NULL while it is opened, and after its end */
	int interval_ms;
	bool dead;
	bool closing;
	int error;      /* what closing it ended with */
	int port_error; /* why the port is not heard of, when it was opened */

	napi_ref notify; /* a function (event, value): all that JavaScript hears of the device */
	napi_async_context context;
};

/* environment.c */
struct environment *environment_new(napi_env env);
void environment_add(struct environment *environment, struct device *device);
void environment_remove(struct environment *environment, struct device *device);

/*
 * opening.c: mlx5vfio_open() on a thread of its own, then device_opened() and device_announce() on
 * the loop. An opening that was abandoned calls neither, and closes the ctx that it may still get.
 */
int opening_start(struct device *device, const char *pci_name);
void opening_abandon(struct opening *opening);

/* device.c */
struct device *device_new(struct environment *environment, napi_value notify, int interval_ms);
int device_opened(struct device *device, struct ibv_context *ctx);
void device_announce(struct device *device, int error, const char *why);
int device_close(struct device *device);
/* The environment ends: nothing may keep the loop from closing for long. */
void device_end(struct device *device);
void device_drop(struct device *device);
/* Frees the device, unless something of it is still in the loop. */
void device_gone(struct device *device);

/* values.c. NULL when JavaScript can no longer run; throw_errno() always gives NULL. */
napi_value value_string(napi_env env, const char *string);
napi_value value_error(napi_env env, int error, const char *message);
napi_value value_health(napi_env env, const struct mlx5vfio_health *health);
napi_value value_stats(napi_env env, const struct mlx5vfio_stats *stats);
napi_value value_port(napi_env env, const struct mlx5vfio_event *event);
napi_value throw_errno(napi_env env, int error, const char *message);

#endif

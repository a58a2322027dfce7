/* SPDX-License-Identifier: BSD-2-Clause */
/* A device from open() to its end, and all that JavaScript hears of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "addon.h"

/* A handler that throws becomes an uncaughtException, as in any callback of Node's own. */
static void rethrow(napi_env env)
{
	napi_value error;

	if (napi_get_and_clear_last_exception(env, &error) == napi_ok)
		napi_fatal_exception(env, error);
}

/*
 * libuv calls us outside of JavaScript. napi_make_callback() brings the callback scope: what a
 * handler resolves or puts off with nextTick() runs before it returns.
 */
static void call(const struct device *device, const char *event, napi_value value)
{
	napi_env env = device->environment->env;
	napi_value argv[2] = { value_string(env, event), value };
	napi_value notify = NULL, global = NULL;

	napi_get_reference_value(env, device->notify, &notify);
	napi_get_global(env, &global);
	if (!argv[0] || !argv[1] || !notify || !global)
		return;
	if (napi_make_callback(env, device->context, global, notify, 2, argv, NULL) ==
	    napi_pending_exception)
		rethrow(env);
}

typedef napi_value make_value(const struct device *device, const void *what);

/* In a scope for the values that make() creates, or the loop's lifetime would be theirs. */
static void tell(const struct device *device, const char *event, make_value *make, const void *what)
{
	napi_env env = device->environment->env;
	napi_handle_scope scope;

	if (device->environment->ending || napi_open_handle_scope(env, &scope))
		return;
	call(device, event, make(device, what));
	napi_close_handle_scope(env, scope);
}

static napi_value make_nothing(const struct device *device, const void *what)
{
	napi_value value = NULL;

	(void)what;
	napi_get_undefined(device->environment->env, &value);
	return value;
}

static napi_value make_health(const struct device *device, const void *health)
{
	return value_health(device->environment->env, health);
}

struct reason {
	int error;
	const char *message;
};

static napi_value make_error(const struct device *device, const void *what)
{
	const struct reason *reason = what;

	return value_error(device->environment->env, reason->error, reason->message);
}

static void tell_error(const struct device *device, const char *event, int error, const char *what)
{
	char words[64], message[128];
	struct reason reason = { error, message };

	uv_strerror_r(error, words, sizeof(words));
	snprintf(message, sizeof(message), "%s: %s", what, words);
	tell(device, event, make_error, &reason);
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct device *device = arg;

	(void)dev;
	if (health->fault)
		device->dead = true;
	tell(device, "health", make_health, health);
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)dev;
	tell_error(arg, "error", error, "events are not handled for now");
}

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	(void)dev;
	tell(arg, "removal", make_nothing, NULL);
}

static napi_value make_port(const struct device *device, const void *event)
{
	return value_port(device->environment->env, event);
}

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg);

/*
 * The queue ends with the device. JavaScript may keep the loop busy for long: 256 changes have room
 * meanwhile.
 */
static int watch_ports(struct device *device)
{
	const struct mlx5vfio_eq_attr attr = {
		.log_size = 8,
		.events = UINT64_C(1) << MLX5VFIO_EVENT_PORT_STATE_CHANGE,
	};

	return mlx5vfio_eq_open(device->dev, &attr, on_event, device) ? 0 : -errno;
}

/* Of the end of a device 'health' and 'close' tell. */
static void tell_no_ports(const struct device *device, int error)
{
	if (error && error != -ENODEV)
		tell_error(device, "portError", error, "port changes are not heard of");
}

/* Nothing comes through this queue any more. First the new one: JavaScript may close the device. */
static void on_overrun(struct device *device, struct mlx5vfio_eq *eq)
{
	int err;

	mlx5vfio_eq_close(eq);
	err = watch_ports(device);
	if (err)
		tell_no_ports(device, err);
	else
		tell_error(device, "portError", -ENOBUFS, "port changes were lost");
}

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	if (event->type == MLX5VFIO_EVENT_PORT_STATE_CHANGE)
		tell(arg, "port", make_port, event);
	else if (event->type == MLX5VFIO_EVENT_QUEUE_OVERRUN)
		on_overrun(arg, eq);
}

static void on_closed(int error, void *arg)
{
	((struct device *)arg)->error = error;
}

/* JavaScript hears of the close only now that nothing of the device is left in the loop. */
static void on_detached(void *arg)
{
	struct device *device = arg;

	device->dev = NULL;
	if (device->error)
		tell_error(device, "close", device->error, "closing failed");
	else
		tell(device, "close", make_nothing, NULL);
	device_gone(device);
}

struct device *device_new(struct environment *environment, napi_value notify, int interval_ms)
{
	struct device *device = calloc(1, sizeof(*device));
	napi_env env = environment->env;

	if (!device)
		return NULL;
	device->environment = environment;
	device->interval_ms = interval_ms;
	if (napi_create_reference(env, notify, 1, &device->notify))
		goto fail;
	if (napi_async_init(env, NULL, value_string(env, "mlx5vfio"), &device->context))
		goto fail_reference;
	environment_add(environment, device);
	return device;

fail_reference:
	napi_delete_reference(env, device->notify);
fail:
	free(device);
	return NULL;
}

int device_opened(struct device *device, struct ibv_context *ctx)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
		.removal = on_removal,
		.closed = on_closed,
		.detached = on_detached,
	};

	device->dev = mlx5vfio_uv_attach(device->environment->loop, ctx);
	if (!device->dev)
		return -errno;
	mlx5vfio_set_handlers(device->dev, &handlers, device);
	mlx5vfio_set_interval(device->dev, device->interval_ms); /* index.js has checked it */
	device->port_error = watch_ports(device);
	return 0;
}

static void finalize_handle(napi_env env, void *data, void *hint)
{
	struct handle *handle = data;

	(void)env;
	(void)hint;
	if (handle->device)
		handle->device->handle = NULL;
	free(handle);
}

static napi_value make_handle(const struct device *device, const void *what)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	napi_value value = NULL;

	(void)what;
	if (!handle)
		return NULL;
	if (napi_create_external(device->environment->env, handle, finalize_handle, NULL, &value)) {
		free(handle);
		return NULL;
	}
	handle->device = (struct device *)device;
	handle->device->handle = handle;
	return value;
}

void device_announce(struct device *device, int error, const char *why)
{
	struct reason reason = { error, why };

	if (error) {
		tell(device, "fail", make_error, &reason);
		return;
	}
	tell(device, "open", make_handle, NULL);
	tell_no_ports(device, device->port_error); /* the listeners are set by now */
}

/* Nobody awaits the end of a close in vain: it keeps the loop alive, whatever was set before. */
int device_close(struct device *device)
{
	int err = mlx5vfio_close(device->dev);

	if (err)
		return err;
	device->closing = true;
	mlx5vfio_ref(device->dev);
	return 0;
}

void device_drop(struct device *device)
{
	mlx5vfio_detach(device->dev);
}

/* A helper thread goes on with a close that takes minutes. */
void device_end(struct device *device)
{
	if (device->opening)
		opening_abandon(device->opening);
	if (!device->dev)
		return;
	if ((!device->closing && device_close(device)) || device->dead)
		device_drop(device);
}

void device_gone(struct device *device)
{
	struct environment *environment = device->environment;
	napi_handle_scope scope;

	if (device->opening || device->dev)
		return;
	if (device->handle)
		device->handle->device = NULL;
	if (!napi_open_handle_scope(environment->env, &scope)) {
		napi_delete_reference(environment->env, device->notify);
		napi_async_destroy(environment->env, device->context);
		napi_close_handle_scope(environment->env, scope);
	}
	environment_remove(environment, device);
	free(device);
}

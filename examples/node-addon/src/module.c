/* SPDX-License-Identifier: BSD-2-Clause */
/* What index.js calls. It alone does, so arguments are checked no further than memory needs. */
#include <errno.h>

#include "addon.h"

static napi_value undefined(napi_env env)
{
	napi_value value = NULL;

	napi_get_undefined(env, &value);
	return value;
}

/* open(pciName, intervalMs, notify) */
static napi_value open_device(napi_env env, napi_callback_info info)
{
	struct environment *environment;
	struct device *device;
	char pci_name[32];
	napi_value argv[3];
	size_t argc = 3;
	int32_t interval_ms;
	int err;

	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) ||
	    napi_get_instance_data(env, (void **)&environment) ||
	    napi_get_value_string_utf8(env, argv[0], pci_name, sizeof(pci_name), NULL) ||
	    napi_get_value_int32(env, argv[1], &interval_ms))
		return throw_errno(env, -EINVAL, "bad arguments");
	device = device_new(environment, argv[2], interval_ms);
	if (!device)
		return throw_errno(env, -ENOMEM, "no memory for a device");
	err = opening_start(device, pci_name);
	if (!err)
		return undefined(env);
	device_gone(device);
	return throw_errno(env, err, "no thread to open a device on");
}

/* The device of a function (handle), or NULL after its end. */
static struct device *argument(napi_env env, napi_callback_info info)
{
	struct handle *handle = NULL;
	napi_value argv[1];
	size_t argc = 1;

	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) ||
	    napi_get_value_external(env, argv[0], (void **)&handle))
		return NULL;
	return handle->device;
}

/* One that is not being closed; else throws and gives NULL. */
static struct device *live_argument(napi_env env, napi_callback_info info)
{
	struct device *device = argument(env, info);

	if (device && device->dev && !device->closing)
		return device;
	throw_errno(env, -EBADF, "the device is closed");
	return NULL;
}

static napi_value health(napi_env env, napi_callback_info info)
{
	const struct device *device = live_argument(env, info);
	struct mlx5vfio_health now;
	int err;

	if (!device)
		return NULL;
	err = mlx5vfio_get_health(device->dev, &now);
	if (err)
		return throw_errno(env, err, "the health registers cannot be read");
	return value_health(env, &now);
}

static napi_value stats(napi_env env, napi_callback_info info)
{
	const struct device *device = live_argument(env, info);
	struct mlx5vfio_stats now;

	if (!device)
		return NULL;
	mlx5vfio_get_stats(device->dev, &now, sizeof(now));
	return value_stats(env, &now);
}

static napi_value guarded(napi_env env, napi_callback_info info)
{
	const struct device *device = live_argument(env, info);
	napi_value value = NULL;

	if (device)
		napi_get_boolean(env, mlx5vfio_guarded(device->dev), &value);
	return value;
}

/* Also while it is being closed, and without effect afterwards. */
static napi_value ref(napi_env env, napi_callback_info info)
{
	const struct device *device = argument(env, info);

	if (device && device->dev)
		mlx5vfio_ref(device->dev);
	return undefined(env);
}

static napi_value unref(napi_env env, napi_callback_info info)
{
	const struct device *device = argument(env, info);

	if (device && device->dev)
		mlx5vfio_unref(device->dev);
	return undefined(env);
}

static napi_value close_device(napi_env env, napi_callback_info info)
{
	struct device *device = live_argument(env, info);
	int err;

	if (!device)
		return NULL;
	err = device_close(device);
	if (err)
		return throw_errno(env, err, "no thread to close the device on");
	return undefined(env);
}

#define FUNCTION(name, function)                                           \
	{                                                                  \
		name, NULL, function, NULL, NULL, NULL, napi_default, NULL \
	}
#define VALUE(name, value)                                              \
	{                                                               \
		name, NULL, NULL, NULL, NULL, value, napi_default, NULL \
	}

NAPI_MODULE_INIT()
{
	const napi_property_descriptor properties[] = {
		FUNCTION("open", open_device),
		FUNCTION("health", health),
		FUNCTION("stats", stats),
		FUNCTION("guarded", guarded),
		FUNCTION("ref", ref),
		FUNCTION("unref", unref),
		FUNCTION("close", close_device),
		VALUE("version", value_string(env, mlx5vfio_version())),
		VALUE("uvVersion", value_string(env, uv_version_string())),
	};

	if (!environment_new(env))
		return throw_errno(env, -ENOMEM, "no memory for the addon");
	napi_define_properties(env, exports, sizeof(properties) / sizeof(properties[0]),
			       properties);
	return exports;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* C into JavaScript. A call that fails leaves a property out: the environment is ending then. */
#include <stdio.h>

#include "addon.h"

napi_value value_string(napi_env env, const char *string)
{
	napi_value value = NULL;

	napi_create_string_utf8(env, string, NAPI_AUTO_LENGTH, &value);
	return value;
}

static void set(napi_env env, napi_value object, const char *name, napi_value value)
{
	if (object && value)
		napi_set_named_property(env, object, name, value);
}

static void set_string(napi_env env, napi_value object, const char *name, const char *string)
{
	set(env, object, name, value_string(env, string));
}

static void set_number(napi_env env, napi_value object, const char *name, double number)
{
	napi_value value = NULL;

	napi_create_double(env, number, &value);
	set(env, object, name, value);
}

static void set_bool(napi_env env, napi_value object, const char *name, bool truth)
{
	napi_value value = NULL;

	napi_get_boolean(env, truth, &value);
	set(env, object, name, value);
}

/* The name of the errno is what programs compare; the number is there as in Node's own errors. */
napi_value value_error(napi_env env, int error, const char *message)
{
	napi_value value = NULL;
	char name[32];

	uv_err_name_r(error, name, sizeof(name));
	napi_create_error(env, value_string(env, name), value_string(env, message), &value);
	if (value)
		set_number(env, value, "errno", error);
	return value;
}

napi_value throw_errno(napi_env env, int error, const char *message)
{
	napi_value value = value_error(env, error, message);

	if (value)
		napi_throw(env, value);
	return NULL;
}

/* Names that programs can compare, where mlx5vfio_fault_str() has words to read. */
static const char *fault_name(enum mlx5vfio_fault fault)
{
	switch (fault) {
	case MLX5VFIO_OK:
		break;
	case MLX5VFIO_PCI_OFFLINE:
		return "PCI_OFFLINE";
	case MLX5VFIO_NIC_DISABLED:
		return "NIC_DISABLED";
	case MLX5VFIO_NIC_RESET:
		return "NIC_RESET";
	case MLX5VFIO_FW_FATAL:
		return "FW_FATAL";
	case MLX5VFIO_STALLED:
		return "STALLED";
	case MLX5VFIO_FOREIGN_RESET:
		return "FOREIGN_RESET";
	case MLX5VFIO_PCI_ERROR:
		return "PCI_ERROR";
	}
	return "UNKNOWN";
}

static void set_fault(napi_env env, napi_value object, enum mlx5vfio_fault fault)
{
	napi_value null = NULL;

	set_string(env, object, "text", mlx5vfio_fault_str(fault));
	if (fault) {
		set_string(env, object, "fault", fault_name(fault));
		return;
	}
	napi_get_null(env, &null);
	set(env, object, "fault", null);
}

static void set_firmware(napi_env env, napi_value object, const struct mlx5vfio_health *health)
{
	char version[32];

	snprintf(version, sizeof(version), "%u.%u.%04u", health->fw_major, health->fw_minor,
		 health->fw_subminor);
	set_string(env, object, "firmware", version);
}

static void set_assert_record(napi_env env, napi_value object, const struct mlx5vfio_health *health)
{
	const uint32_t count = sizeof(health->assert_var) / sizeof(health->assert_var[0]);
	napi_value array = NULL, number = NULL;
	uint32_t i;

	napi_create_array_with_length(env, count, &array);
	for (i = 0; array && i < count; i++) {
		napi_create_uint32(env, health->assert_var[i], &number);
		napi_set_element(env, array, i, number);
	}
	set(env, object, "assertVar", array);
	set_number(env, object, "assertExitPtr", health->assert_exit_ptr);
	set_number(env, object, "assertCallra", health->assert_callra);
}

napi_value value_health(napi_env env, const struct mlx5vfio_health *health)
{
	napi_value object = NULL;

	napi_create_object(env, &object);
	set_fault(env, object, health->fault);
	set_bool(env, object, "warning", health->warning);
	set_number(env, object, "synd", health->synd);
	set_string(env, object, "syndText", mlx5vfio_synd_str(health->synd));
	set_number(env, object, "extSynd", health->ext_synd);
	set_firmware(env, object, health);
	set_number(env, object, "counter", health->counter);
	set_number(env, object, "unmovedMs", health->unmoved_ms);
	set_assert_record(env, object, health);
	set_number(env, object, "hwId", health->hw_id);
	set_number(env, object, "iriscIndex", health->irisc_index);
	set_bool(env, object, "recoveryRequest", health->recovery_request);
	return object;
}

napi_value value_stats(napi_env env, const struct mlx5vfio_stats *stats)
{
	napi_value object = NULL;

	napi_create_object(env, &object);
	set_number(env, object, "wakeups", (double)stats->wakeups);
	set_number(env, object, "ticks", (double)stats->ticks);
	set_number(env, object, "calls", (double)stats->calls);
	set_number(env, object, "errors", (double)stats->errors);
	set_number(env, object, "retries", (double)stats->retries);
	set_number(env, object, "reports", (double)stats->reports);
	set_number(env, object, "samples", (double)stats->samples);
	set_number(env, object, "deferred", (double)stats->deferred);
	set_number(env, object, "events", (double)stats->events);
	return object;
}

static const char *port_state(uint8_t state)
{
	switch (state) {
	case MLX5VFIO_PORT_UP:
		return "up";
	case MLX5VFIO_PORT_DOWN:
		return "down";
	default:
		return "changed";
	}
}

napi_value value_port(napi_env env, const struct mlx5vfio_event *event)
{
	napi_value object = NULL;

	napi_create_object(env, &object);
	set_number(env, object, "port", event->port);
	set_string(env, object, "state", port_state(event->sub_type));
	set_number(env, object, "subType", event->sub_type);
	return object;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus text format, version 0.0.4: a family at a time, its samples together. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "server.h"

struct family {
	const char *name, *type, *help;
	double (*value)(const struct device *device);
};

static double up(const struct device *device)
{
	return device_serves(device);
}

static double warning(const struct device *device)
{
	return device->health.warning;
}

static double syndrome(const struct device *device)
{
	return device->health.synd;
}

static double unmoved(const struct device *device)
{
	return device->health.unmoved_ms / 1e3;
}

static double port_ups(const struct device *device)
{
	return (double)device->port_ups;
}

static double port_downs(const struct device *device)
{
	return (double)device->port_downs;
}

static double port_overruns(const struct device *device)
{
	return (double)device->port_overruns;
}

static const struct family families[] = {
	{ "mlx5vfio_up", "gauge", "1 while the device serves, 0 once it is dead or closed.", up },
	{ "mlx5vfio_warning", "gauge", "1 while firmware reports something that is not fatal.",
	  warning },
	{ "mlx5vfio_syndrome", "gauge", "The syndrome that firmware reports, 0 for none.",
	  syndrome },
	{ "mlx5vfio_health_unmoved_seconds", "gauge",
	  "For how long the health counter has not moved.", unmoved },
	{ "mlx5vfio_port_up_total", "counter", "Times a port came up.", port_ups },
	{ "mlx5vfio_port_down_total", "counter", "Times a port went down.", port_downs },
	{ "mlx5vfio_port_overruns_total", "counter", "Times that port events were lost.",
	  port_overruns },
};

struct counter {
	const char *name, *help;
	size_t offset;
};

#define STAT(field) offsetof(struct mlx5vfio_stats, field)

static const struct counter counters[] = {
	{ "mlx5vfio_wakeups_total", "Times the loop found the events fd ready.", STAT(wakeups) },
	{ "mlx5vfio_ticks_total", "Health ticks.", STAT(ticks) },
	{ "mlx5vfio_calls_total", "Calls of mlx5dv_vfio_process_events().", STAT(calls) },
	{ "mlx5vfio_errors_total", "Calls that failed.", STAT(errors) },
	{ "mlx5vfio_retries_total", "Calls made because the one before failed.", STAT(retries) },
	{ "mlx5vfio_samples_total", "Times the health registers were read.", STAT(samples) },
	{ "mlx5vfio_deferred_total", "Calls put off for the guard's sake.", STAT(deferred) },
	{ "mlx5vfio_events_total", "Events handed out by event queues.", STAT(events) },
};

static void add_head(struct evbuffer *body, const char *name, const char *type, const char *help)
{
	evbuffer_add_printf(body, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The format has three characters to escape in a label's value. */
static void add_label(struct evbuffer *body, const char *name, const char *value)
{
	evbuffer_add_printf(body, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '\n')
			evbuffer_add(body, "\\n", 2);
		else
			evbuffer_add_printf(body, "%s%c",
					    *value == '"' || *value == '\\' ? "\\" : "", *value);
	}
	evbuffer_add(body, "\"", 1);
}

static void add_sample(struct evbuffer *body, const char *name, const struct device *device)
{
	evbuffer_add_printf(body, "%s{", name);
	add_label(body, "device", device->pci_name);
	evbuffer_add(body, "} ", 2);
}

static void add_family(struct evbuffer *body, const struct server *server,
		       const struct family *family)
{
	int i;

	add_head(body, family->name, family->type, family->help);
	for (i = 0; i < server->count; i++) {
		add_sample(body, family->name, &server->devices[i]);
		evbuffer_add_printf(body, "%g\n", family->value(&server->devices[i]));
	}
}

static void add_counter(struct evbuffer *body, const struct server *server,
			const struct counter *counter)
{
	const char *stats;
	int i;

	add_head(body, counter->name, "counter", counter->help);
	for (i = 0; i < server->count; i++) {
		stats = (const char *)&server->devices[i].stats;
		add_sample(body, counter->name, &server->devices[i]);
		evbuffer_add_printf(body, "%" PRIu64 "\n",
				    *(const uint64_t *)(stats + counter->offset));
	}
}

/* What are words and not numbers are labels of a sample that is always 1. */
static void add_info(struct evbuffer *body, const struct server *server)
{
	const struct mlx5vfio_health *health;
	char firmware[32];
	int i;

	add_head(body, "mlx5vfio_device_info", "gauge", "Firmware and state, as labels.");
	for (i = 0; i < server->count; i++) {
		health = &server->devices[i].health;
		snprintf(firmware, sizeof(firmware), "%u.%u.%04u", health->fw_major,
			 health->fw_minor, health->fw_subminor);
		evbuffer_add_printf(body, "mlx5vfio_device_info{");
		add_label(body, "device", server->devices[i].pci_name);
		evbuffer_add(body, ",", 1);
		add_label(body, "firmware", firmware);
		evbuffer_add(body, ",", 1);
		add_label(body, "state", mlx5vfio_fault_str(health->fault));
		evbuffer_add_printf(body, "} 1\n");
	}
}

void metrics(struct evhttp_request *request, struct server *server)
{
	struct evbuffer *body = evbuffer_new();
	size_t i;

	if (!body) {
		evhttp_send_error(request, HTTP_INTERNAL, NULL);
		return;
	}
	for (i = 0; i < (size_t)server->count; i++)
		device_look(&server->devices[i]);
	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		add_family(body, server, &families[i]);
	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		add_counter(body, server, &counters[i]);
	add_info(body, server);
	answer(request, HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", body);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Health as JSON. 503 tells a load balancer what the text tells a person. */
#include <strings.h>

#include "server.h"

static const char *status_of(const struct device *device)
{
	if (device->health.fault)
		return "dead";
	if (device->removed)
		return "removed";
	if (!device_serves(device))
		return "closed";
	return device->health.warning ? "warning" : "ok";
}

/* No string here needs escaping: a name that was opened has digits, colons and a dot. */
static void add_device(struct evbuffer *body, struct device *device)
{
	const struct mlx5vfio_health *health = &device->health;

	evbuffer_add_printf(
		body,
		"{\"device\":\"%s\",\"status\":\"%s\",\"health\":\"%s\",\"synd\":%u,"
		"\"synd_text\":\"%s\",\"ext_synd\":%u,\"firmware\":\"%u.%u.%04u\",\"counter\":%u,"
		"\"unmoved_ms\":%u,\"guarded\":%s}",
		device->pci_name, status_of(device), mlx5vfio_fault_str(health->fault),
		health->synd, mlx5vfio_synd_str(health->synd), health->ext_synd, health->fw_major,
		health->fw_minor, health->fw_subminor, health->counter, health->unmoved_ms,
		device_serves(device) && mlx5vfio_guarded(device->dev) ? "true" : "false");
}

static int http_status(bool good)
{
	return good ? HTTP_OK : HTTP_SERVUNAVAIL;
}

void health_one(struct evhttp_request *request, struct server *server, const char *pci_name)
{
	struct evbuffer *body = evbuffer_new();
	struct device *device = server->devices;

	while (device < server->devices + server->count && strcasecmp(device->pci_name, pci_name))
		device++;
	if (!body || device == server->devices + server->count) {
		evhttp_send_error(request, body ? HTTP_NOTFOUND : HTTP_INTERNAL, NULL);
		if (body)
			evbuffer_free(body);
		return;
	}
	device_look(device);
	add_device(body, device);
	evbuffer_add(body, "\n", 1);
	answer(request, http_status(device_serves(device)), "application/json", body);
}

void health_all(struct evhttp_request *request, struct server *server)
{
	struct evbuffer *body = evbuffer_new();
	bool good = true;
	int i;

	if (!body) {
		evhttp_send_error(request, HTTP_INTERNAL, NULL);
		return;
	}
	for (i = 0; i < server->count; i++) {
		device_look(&server->devices[i]);
		good = good && device_serves(&server->devices[i]);
	}
	evbuffer_add_printf(body, "{\"status\":\"%s\",\"devices\":[", good ? "ok" : "degraded");
	for (i = 0; i < server->count; i++) {
		if (i)
			evbuffer_add(body, ",", 1);
		add_device(body, &server->devices[i]);
	}
	evbuffer_add_printf(body, "]}\n");
	answer(request, http_status(good), "application/json", body);
}

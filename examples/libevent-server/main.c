/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libevent-server PORT PCI-NAME…: serves /health, /health/PCI-NAME and /metrics on 127.0.0.1 (port 0:
 * any free one) until SIGTERM or SIGINT. A device that dies ends neither the others nor the server.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

/* A healthy device closes in a fraction of this. */
#define PATIENCE_S 10

void answer(struct evhttp_request *request, int status, const char *type, struct evbuffer *body)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
	evhttp_send_reply(request, status, status == HTTP_OK ? "OK" : "Service Unavailable", body);
	evbuffer_free(body);
}

static void on_request(struct evhttp_request *request, void *arg)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));

	if (!strcmp(path, "/health"))
		health_all(request, arg);
	else if (!strncmp(path, "/health/", 8))
		health_one(request, arg, path + 8);
	else if (!strcmp(path, "/metrics"))
		metrics(request, arg);
	else
		evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

/* The second signal is meant: it does not wait for devices. */
static void on_signal(evutil_socket_t number, short events, void *arg)
{
	const struct timeval patience = { PATIENCE_S, 0 };
	struct server *server = arg;
	int i;

	(void)number;
	(void)events;
	if (server->stopping) {
		event_base_loopbreak(server->base);
		return;
	}
	server->stopping = true;
	for (i = 0; i < server->count; i++)
		device_stop(&server->devices[i]);
	event_base_loopexit(server->base, server->attached ? &patience : NULL);
}

static bool listen_on(struct server *server, uint16_t port)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	bound = evhttp_bind_socket_with_handle(server->http, "127.0.0.1", port);
	if (!bound ||
	    getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &size)) {
		perror("127.0.0.1");
		return false;
	}
	printf("listening on http://127.0.0.1:%u\n", ntohs(address.sin_port));
	return true;
}

static bool start(struct server *server, uint16_t port)
{
	int i;

	server->base = event_base_new();
	server->http = server->base ? evhttp_new(server->base) : NULL;
	if (!server->http)
		return false;
	server->interrupt = evsignal_new(server->base, SIGINT, on_signal, server);
	server->terminate = evsignal_new(server->base, SIGTERM, on_signal, server);
	if (!server->interrupt || !server->terminate || event_add(server->interrupt, NULL) ||
	    event_add(server->terminate, NULL))
		return false;
	evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_gencb(server->http, on_request, server);
	for (i = 0; i < server->count; i++)
		if (!device_start(&server->devices[i]))
			return false;
	return listen_on(server, port);
}

/* Devices leave the loop before it is freed. */
static void finish(struct server *server)
{
	int i;

	for (i = 0; i < server->count; i++)
		mlx5vfio_detach(server->devices[i].dev);
	if (server->interrupt)
		event_free(server->interrupt);
	if (server->terminate)
		event_free(server->terminate);
	if (server->http)
		evhttp_free(server->http);
	if (server->base)
		event_base_free(server->base);
	free(server->devices);
}

int main(int argc, char **argv)
{
	struct server server = { .count = argc - 2 };
	bool started;
	int i;

	if (argc < 3) {
		fprintf(stderr, "usage: %s PORT PCI-NAME...\n", argv[0]);
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN); /* a client that hangs up */
	server.devices = calloc((size_t)server.count, sizeof(*server.devices));
	if (!server.devices)
		return 1;
	for (i = 0; i < server.count; i++)
		server.devices[i] = (struct device){ .server = &server, .pci_name = argv[i + 2] };
	started = start(&server, (uint16_t)atoi(argv[1]));
	if (started)
		event_base_dispatch(server.base);
	finish(&server);
	return started ? 0 : 1;
}

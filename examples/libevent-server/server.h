/* SPDX-License-Identifier: BSD-2-Clause */
/* An HTTP server that tells how the devices on its loop are. */
#ifndef SERVER_H
#define SERVER_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <mlx5vfio/eq.h>
#include <mlx5vfio/libevent.h>

struct device {
	struct server *server;
	const char *pci_name;
	struct mlx5vfio *dev;          /* NULL: closed */
	bool closing;                  /* nothing may be asked of dev any more */
	bool removed;                  /* because the kernel wanted it back */
	struct mlx5vfio_health health; /* the last that is known, and so of the counters */
	struct mlx5vfio_stats stats;
	unsigned long port_ups, port_downs; /* changes that the device told */
	unsigned long port_overruns;        /* times that some were lost */
};

struct server {
	struct event_base *base;
	struct evhttp *http;
	struct event *interrupt, *terminate;
	struct device *devices;
	int count;
	int attached; /* devices that the loop has not let go of */
	bool stopping;
};

/* device.c */
bool device_start(struct device *device);
void device_stop(struct device *device);
/* Reads the registers and the counters, if the device still has any. */
void device_look(struct device *device);
bool device_serves(const struct device *device);

/* health.c: /health and /health/PCI-NAME */
void health_all(struct evhttp_request *request, struct server *server);
void health_one(struct evhttp_request *request, struct server *server, const char *pci_name);

/* metrics.c: /metrics */
void metrics(struct evhttp_request *request, struct server *server);

/* main.c: takes body. */
void answer(struct evhttp_request *request, int status, const char *type, struct evbuffer *body);

#endif

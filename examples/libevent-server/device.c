/* SPDX-License-Identifier: BSD-2-Clause */
/* A device from its opening to its end: what is known of it stays, so that it can be asked for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server.h"

void device_look(struct device *device)
{
	struct mlx5vfio_health now;

	if (!device->dev || device->closing)
		return;
	mlx5vfio_get_stats(device->dev, &device->stats, sizeof(device->stats));
	if (!mlx5vfio_get_health(device->dev, &now))
		device->health = now;
}

bool device_serves(const struct device *device)
{
	return device->dev && !device->closing && !device->health.fault;
}

/* On a helper thread: a dead device takes minutes, and the loop goes on meanwhile. */
static void begin_close(struct device *device)
{
	device_look(device);
	if (!device->closing && !mlx5vfio_close(device->dev))
		device->closing = true;
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct device *device = arg;

	(void)dev;
	printf("%s: %s, syndrome 0x%02x (%s)\n", device->pci_name,
	       health->warning ? "warning" : mlx5vfio_fault_str(health->fault), health->synd,
	       mlx5vfio_synd_str(health->synd));
	if (health->fault)
		begin_close(device);
	device->health = *health;
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)dev;
	printf("%s: events are not handled for now: %s\n", ((struct device *)arg)->pci_name,
	       strerror(-error));
}

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	struct device *device = arg;

	(void)dev;
	printf("%s: the kernel wants it back\n", device->pci_name);
	device->removed = true;
	begin_close(device);
}

static void on_closed(int error, void *arg)
{
	printf("%s: closed%s%s\n", ((struct device *)arg)->pci_name, error ? ": " : "",
	       error ? strerror(-error) : "");
}

static void on_detached(void *arg)
{
	struct device *device = arg;

	device->dev = NULL;
	device->server->attached--;
	if (device->server->stopping && !device->server->attached)
		event_base_loopexit(device->server->base, NULL);
}

static void on_port_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg);

/*
 * The queue ends with the device. Without one its port is simply not heard of. 256 changes may come
 * while the loop is busy elsewhere.
 */
static void watch_ports(struct device *device)
{
	const struct mlx5vfio_eq_attr attr = {
		.log_size = 8,
		.events = UINT64_C(1) << MLX5VFIO_EVENT_PORT_STATE_CHANGE,
	};

	if (!mlx5vfio_eq_open(device->dev, &attr, on_port_event, device))
		fprintf(stderr, "%s: no port events: %s\n", device->pci_name, strerror(errno));
}

static void on_port_change(struct device *device, const struct mlx5vfio_event *event)
{
	printf("%s: port %u: state %u\n", device->pci_name, event->port, event->sub_type);
	device->port_ups += event->sub_type == MLX5VFIO_PORT_UP;
	device->port_downs += event->sub_type == MLX5VFIO_PORT_DOWN;
}

/* Nothing comes through this queue any more, and nobody knows how many changes were lost. */
static void on_port_overrun(struct device *device, struct mlx5vfio_eq *eq)
{
	fprintf(stderr, "%s: port events were lost\n", device->pci_name);
	device->port_overruns++;
	mlx5vfio_eq_close(eq);
	watch_ports(device);
}

static void on_port_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	if (event->type == MLX5VFIO_EVENT_PORT_STATE_CHANGE)
		on_port_change(arg, event);
	else if (event->type == MLX5VFIO_EVENT_QUEUE_OVERRUN)
		on_port_overrun(arg, eq);
}

/* Milliseconds, but minutes on sick firmware: before the loop runs, or on a thread. */
bool device_start(struct device *device)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
		.removal = on_removal,
		.closed = on_closed,
		.detached = on_detached,
	};
	char why[512];
	struct ibv_context *ctx = mlx5vfio_open(device->pci_name, 0, why, sizeof(why));

	if (ctx)
		device->dev = mlx5vfio_libevent_attach(device->server->base, ctx);
	if (!device->dev) {
		fprintf(stderr, "%s: %s\n", device->pci_name, ctx ? strerror(errno) : why);
		return false;
	}
	mlx5vfio_set_handlers(device->dev, &handlers, device);
	watch_ports(device);
	device->server->attached++;
	device_look(device);
	return true;
}

/* A dead one is not waited for: the end of the process closes it. */
void device_stop(struct device *device)
{
	if (!device->dev)
		return;
	begin_close(device);
	if (!device->closing || device->health.fault)
		mlx5vfio_detach(device->dev);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of a device's health, and who is told. */
#include <errno.h>
#include <stdio.h>

#include "device.h"

static bool is_warning(const struct registers_sample *sample)
{
	return sample->synd && !sample->recovery_request;
}

static void fill_report(const struct mlx5vfio *dev, struct mlx5vfio_health *health)
{
	*health = (struct mlx5vfio_health){ 0 };
	registers_report(dev->guard.bar, health);
	health->fault = dev->fault;
	health->warning = !dev->fault && health->synd && !health->recovery_request;
	health->unmoved_ms = guard_unmoved_ms(&dev->guard);
}

/* The one thing the libraries ever print: a death that nobody asked to hear of. */
static void print_fault(const struct mlx5vfio_health *health)
{
	fprintf(stderr, "mlx5vfio: device is dead: %s, syndrome 0x%02x (%s), firmware %u.%u.%04u\n",
		mlx5vfio_fault_str(health->fault), health->synd, mlx5vfio_synd_str(health->synd),
		health->fw_major, health->fw_minor, health->fw_subminor);
}

/* The device is never processed again. .health hears of it when the loop is on the stack. */
void health_fault(struct mlx5vfio *dev, enum mlx5vfio_fault fault)
{
	if (dev->state != DEVICE_LIVE)
		return;
	dev->fault = fault;
	dev->state = DEVICE_ENDED;
}

static void tell_fault(struct mlx5vfio *dev)
{
	struct mlx5vfio_health health;

	dev->fault_told = true;
	fill_report(dev, &health);
	if (dev->handlers.health)
		dev->handlers.health(dev, &health, dev->arg);
	else
		print_fault(&health);
}

static void tell_warning(struct mlx5vfio *dev)
{
	const struct registers_sample *sample = &dev->guard.last;
	uint32_t synd = is_warning(sample) ? sample->synd : 0;
	struct mlx5vfio_health health;

	if (synd == dev->warned)
		return;
	dev->warned = synd;
	fill_report(dev, &health);
	if (dev->handlers.health)
		dev->handlers.health(dev, &health, dev->arg);
}

/* Called from the loop after every look. May run .health, and so end in a detached device. */
void health_tell(struct mlx5vfio *dev)
{
	if (dev->fault && !dev->fault_told)
		tell_fault(dev);
	else if (!dev->fault && guard_active(&dev->guard))
		tell_warning(dev);
}

/* Looks now, for the tick. False when the device was found dead. */
bool health_ok(struct mlx5vfio *dev)
{
	enum mlx5vfio_fault fault;

	if (!guard_active(&dev->guard))
		return true;
	fault = guard_look(&dev->guard);
	if (fault != MLX5VFIO_OK)
		health_fault(dev, fault);
	return fault == MLX5VFIO_OK;
}

bool mlx5vfio_guarded(const struct mlx5vfio *dev)
{
	return dev && guard_active(&dev->guard);
}

int mlx5vfio_set_guard(struct mlx5vfio *dev, bool on)
{
	if (!dev)
		return -EINVAL;
	if (!dev->guard.bar)
		return -ENOTSUP;
	guard_switch(&dev->guard, on);
	return 0;
}

int mlx5vfio_get_health(struct mlx5vfio *dev, struct mlx5vfio_health *out)
{
	if (!dev || !out)
		return -EINVAL;
	*out = (struct mlx5vfio_health){ 0 };
	if (!mlx5vfio_guarded(dev) || dev->state == DEVICE_DETACHED)
		return -ENOTSUP;
	if (!device_fd_is_open(dev))
		return -EBADF;
	device_enter(dev);
	health_ok(dev);
	fill_report(dev, out);
	device_leave(dev);
	return 0;
}

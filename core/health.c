/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of a device's health, and who is told. */
#include <errno.h>
#include <stdio.h>

#include "device.h"
#include "thread.h"

/* What there is to be warned of, as a number that differs when it does; 0 for nothing. */
static uint32_t warning_of(const struct mlx5vfio *dev)
{
	const struct registers_sample *sample = &dev->guard.last;
	uint32_t warning = notices_suspect(dev);

	if (sample->synd && !sample->recovery_request)
		warning |= (uint32_t)sample->synd << 24 | (uint32_t)sample->ext_synd << 8;
	return warning;
}

/* Nothing that reads all ones is taken for news of the firmware. */
static void fill_report(const struct mlx5vfio *dev, struct mlx5vfio_health *health)
{
	const struct guard *guard = &dev->guard;

	*health = (struct mlx5vfio_health){ 0 };
	if (guard->bar)
		registers_report(guard->bar, health);
	if (health->hw_id == UINT32_MAX)
		*health = guard->known;
	health->fault = dev->fault;
	health->warning = !dev->fault && warning_of(dev);
	health->unmoved_ms = guard->bar ? guard_unmoved_ms(guard) : 0;
}

/* The one thing the libraries ever print: a death that nobody asked to hear of. */
static void print_fault(const struct mlx5vfio_health *health)
{
	fprintf(stderr, "mlx5vfio: device is dead: %s, syndrome 0x%02x (%s), firmware %u.%u.%04u\n",
		mlx5vfio_fault_str(health->fault), health->synd, mlx5vfio_synd_str(health->synd),
		health->fw_major, health->fw_minor, health->fw_subminor);
}

/* The suspicion lasts until a tick ends it; an error long past is not to blame for all that. */
static bool pci_error_is_to_blame(const struct mlx5vfio *dev)
{
	return notices_suspect(dev) && clock_ms() < dev->suspect_until;
}

/* The device is never processed again. .health hears of it when the loop is on the stack. */
void health_fault(struct mlx5vfio *dev, enum mlx5vfio_fault fault)
{
	if (dev->state != DEVICE_LIVE)
		return;
	notices_read_error(dev);
	dev->fault = pci_error_is_to_blame(dev) ? MLX5VFIO_PCI_ERROR : fault;
	fill_report(dev, &dev->report);
	dev->state = DEVICE_ENDED;
}

static void tell_fault(struct mlx5vfio *dev)
{
	const struct mlx5vfio_health health = dev->report; /* the handler may detach */

	dev->fault_told = true;
	if (dev->handlers.health)
		dev->handlers.health(dev, &health, dev->arg);
	else
		print_fault(&health);
}

static void tell_warning(struct mlx5vfio *dev)
{
	uint32_t warning = warning_of(dev);
	struct mlx5vfio_health health;

	if (warning == dev->warned)
		return;
	dev->warned = warning;
	fill_report(dev, &health);
	if (dev->handlers.health)
		dev->handlers.health(dev, &health, dev->arg);
}

/* Called from the loop after every look. May run .health, and so end in a detached device. */
void health_tell(struct mlx5vfio *dev)
{
	if (dev->fault && !dev->fault_told)
		tell_fault(dev);
	else if (dev->state == DEVICE_LIVE)
		tell_warning(dev);
}

/*
 * Looks now, for an end of whatever kind: a command on a dead device never returns. What is found is not
 * told.
 */
bool health_alive(struct mlx5vfio *dev)
{
	if (dev->state != DEVICE_LIVE || !device_fd_is_open(dev))
		return false;
	return !guard_active(&dev->guard) || guard_look(&dev->guard) == MLX5VFIO_OK;
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

unsigned mlx5vfio_features(const struct mlx5vfio *dev)
{
	unsigned features = 0;

	if (!dev)
		return 0;
	if (guard_active(&dev->guard))
		features |= MLX5VFIO_FEATURE_GUARD;
	if (dev->notices.removal >= 0)
		features |= MLX5VFIO_FEATURE_REMOVAL;
	if (dev->notices.error >= 0)
		features |= MLX5VFIO_FEATURE_PCI_ERROR;
	return features;
}

int mlx5vfio_set_guard(struct mlx5vfio *dev, bool on)
{
	if (!dev)
		return -EINVAL;
	thread_check(dev);
	if (!dev->guard.bar || dev->state != DEVICE_LIVE || !device_fd_is_open(dev))
		return -ENOTSUP;
	guard_switch(&dev->guard, on);
	return 0;
}

int mlx5vfio_get_health(struct mlx5vfio *dev, struct mlx5vfio_health *out)
{
	if (!dev || !out)
		return -EINVAL;
	*out = (struct mlx5vfio_health){ 0 };
	if (!mlx5vfio_guarded(dev) || dev->state > DEVICE_ENDED)
		return -ENOTSUP;
	if (!device_fd_is_open(dev))
		return -EBADF;
	device_enter(dev);
	health_ok(dev);
	fill_report(dev, out);
	device_leave(dev);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The C interface for programs that run under the simulator. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "../mlx5vfio_sim.h"
#include "clock.h"
#include "control.h"
#include "device.h"
#include "engine.h"
#include "real.h"
#include "settings.h"

SIM_EXPORT int mlx5vfio_sim_control(const char *line, char *reply, size_t size);
SIM_EXPORT int mlx5vfio_sim_get_stats(unsigned dev, struct mlx5vfio_sim_stats *stats);
SIM_EXPORT int mlx5vfio_sim_settle(unsigned dev, int timeout_ms);

#define SETTLE_PERIOD (200 * NS_PER_US)

static bool ready(void)
{
	return settings()->active && engine_start();
}

static int settle_until(unsigned device, uint64_t deadline)
{
	const struct timespec pause = { .tv_nsec = (long)SETTLE_PERIOD };

	for (;;) {
		bool settled;

		engine_lock();
		settled = control_settled(device);
		engine_unlock();
		if (settled)
			return 0;
		if (clock_now() >= deadline)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

static int settle_line(unsigned device, uint64_t ns, char *reply, size_t size)
{
	int error = -ENODEV;

	if (device == UINT32_MAX || device_at(device))
		error = settle_until(device, clock_now() + ns);
	snprintf(reply, size, "%s", error == -ETIMEDOUT ? "the device is still busy" : "");
	return error;
}

int mlx5vfio_sim_control(const char *line, char *reply, size_t size)
{
	char text[CONTROL_REPLY];
	unsigned device;
	uint64_t ns;
	int error;

	if (!line || !ready())
		return -EINVAL;
	if (control_settle(line, &device, &ns)) {
		error = settle_line(device, ns, text, sizeof(text));
	} else {
		engine_lock();
		error = control_run(line, text, sizeof(text));
		engine_unlock();
		engine_kick();
	}
	if (reply && size)
		snprintf(reply, size, "%s", text);
	return error;
}

int mlx5vfio_sim_get_stats(unsigned number, struct mlx5vfio_sim_stats *stats)
{
	uint64_t next = UINT64_MAX;
	struct device *dev;

	if (!ready())
		return -ENODEV;
	engine_lock();
	dev = device_at(number);
	if (dev && dev->open)
		device_step(dev, clock_now(), &next);
	if (dev) {
		device_refresh_stats(dev);
		*stats = dev->stats;
	}
	engine_unlock();
	return dev ? 0 : -ENODEV;
}

int mlx5vfio_sim_settle(unsigned device, int timeout_ms)
{
	uint64_t ms = timeout_ms > 0 ? (uint64_t)timeout_ms : 0;

	if (!ready() || !device_at(device))
		return -ENODEV;
	return settle_until(device, clock_now() + ms * NS_PER_MS);
}

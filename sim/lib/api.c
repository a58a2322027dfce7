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

static int wait_until(const struct control_wait *wait)
{
	const struct timespec pause = { .tv_nsec = (long)SETTLE_PERIOD };
	uint64_t deadline = clock_now() + wait->ns;

	for (;;) {
		bool done;

		engine_lock();
		done = control_done(wait);
		engine_unlock();
		if (done)
			return 0;
		if (clock_now() >= deadline)
			return -ETIMEDOUT;
		real()->nanosleep(&pause, NULL);
	}
}

static int run_line(const char *line, char *text, size_t size)
{
	int error;

	engine_lock();
	error = control_run(line, text, size);
	engine_unlock();
	engine_kick();
	return error;
}

static int run_and_wait(const char *line, const struct control_wait *wait, char *text, size_t size)
{
	int error = 0;

	text[0] = '\0';
	if (wait->for_close)
		error = run_line(line, text, size);
	else if (wait->device != UINT32_MAX && !device_at(wait->device))
		error = -ENODEV;
	if (error)
		return error;
	error = wait_until(wait);
	if (error)
		snprintf(text, size, "%s", control_late(wait));
	return error;
}

/* Whoever asks without a time may be the one to close the device, and is not made to wait. */
int mlx5vfio_sim_control(const char *line, char *reply, size_t size)
{
	char text[CONTROL_REPLY];
	struct control_wait wait;
	int error;

	if (!line || !ready())
		return -EINVAL;
	if (control_takes_time(line, &wait) && wait.ns != UINT64_MAX)
		error = run_and_wait(line, &wait, text, sizeof(text));
	else
		error = run_line(line, text, sizeof(text));
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
	const struct control_wait wait = { .device = device, .ns = ms * NS_PER_MS };

	if (!ready() || !device_at(device))
		return -ENODEV;
	return wait_until(&wait);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5vfio monitor: devices in one libuv loop until a signal, a time, or the last of them ends. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "commands.h"
#include "report.h"
#include "watched.h"

#define SECOND_MS      1000
#define CLOSE_GRACE_MS 10000 /* a healthy device closes in a fraction of this */

struct monitor {
	uv_loop_t loop;
	uv_signal_t interrupt, terminate;
	uv_timer_t deadline; /* the end of --seconds, then the end of our patience */
	uv_timer_t every_second;
	uv_prepare_t output; /* once a turn: can we still be read? */
	struct report report;
	struct watched *devices;
	int count;
	int running; /* devices that have not ended */
	bool stopping;
	bool abandoned; /* workers are still busy: nothing may wait for them */
};

/* Nothing of ours may keep the loop from ending. */
static void finish(struct monitor *monitor)
{
	uv_close((uv_handle_t *)&monitor->interrupt, NULL);
	uv_close((uv_handle_t *)&monitor->terminate, NULL);
	uv_close((uv_handle_t *)&monitor->deadline, NULL);
	uv_close((uv_handle_t *)&monitor->every_second, NULL);
	uv_close((uv_handle_t *)&monitor->output, NULL);
}

static void on_ended(struct watched *watched)
{
	struct monitor *monitor = watched->owner;

	if (--monitor->running == 0)
		finish(monitor);
}

static void abandon(struct monitor *monitor)
{
	int i;

	for (i = 0; i < monitor->count; i++) {
		if (watched_abandon(&monitor->devices[i]))
			monitor->abandoned = true;
	}
	uv_stop(&monitor->loop);
}

static void on_patience(uv_timer_t *timer)
{
	abandon(timer->data);
}

static void stop(struct monitor *monitor)
{
	int i;

	monitor->stopping = true;
	uv_timer_start(&monitor->deadline, on_patience, CLOSE_GRACE_MS, 0);
	for (i = 0; i < monitor->count; i++)
		watched_stop(&monitor->devices[i]);
}

static void on_deadline(uv_timer_t *timer)
{
	stop(timer->data);
}

/* The second one is meant. */
static void on_signal(uv_signal_t *signal, int number)
{
	struct monitor *monitor = signal->data;

	(void)number;
	if (monitor->stopping)
		abandon(monitor);
	else
		stop(monitor);
}

static void on_second(uv_timer_t *timer)
{
	struct monitor *monitor = timer->data;
	int i;

	for (i = 0; i < monitor->count; i++)
		watched_show_wakeups(&monitor->devices[i]);
	report_check_reader(&monitor->report);
}

static void on_turn(uv_prepare_t *prepare)
{
	struct monitor *monitor = prepare->data;

	if (monitor->report.write_error && !monitor->stopping)
		stop(monitor);
}

static void start_handles(struct monitor *monitor, double seconds)
{
	uv_signal_init(&monitor->loop, &monitor->interrupt);
	uv_signal_init(&monitor->loop, &monitor->terminate);
	uv_timer_init(&monitor->loop, &monitor->deadline);
	uv_timer_init(&monitor->loop, &monitor->every_second);
	uv_prepare_init(&monitor->loop, &monitor->output);
	monitor->interrupt.data = monitor;
	monitor->terminate.data = monitor;
	monitor->deadline.data = monitor;
	monitor->every_second.data = monitor;
	monitor->output.data = monitor;

	uv_signal_start(&monitor->interrupt, on_signal, SIGINT);
	uv_signal_start(&monitor->terminate, on_signal, SIGTERM);
	if (seconds > 0)
		uv_timer_start(&monitor->deadline, on_deadline, (uint64_t)(seconds * 1e3), 0);
	uv_timer_start(&monitor->every_second, on_second, SECOND_MS, SECOND_MS);
	uv_prepare_start(&monitor->output, on_turn);
}

/* A device that hangs while it opens must not keep the others from opening: a worker for each. */
static void size_thread_pool(int count)
{
	char threads[16];

	snprintf(threads, sizeof(threads), "%d", count);
	setenv("UV_THREADPOOL_SIZE", threads, 1);
}

static void open_devices(struct monitor *monitor, const struct monitor_options *options)
{
	int i;

	size_thread_pool(options->count);
	for (i = 0; i < options->count; i++) {
		struct watched *watched = &monitor->devices[i];

		watched->pci = options->pci_names[i];
		watched->loop = &monitor->loop;
		watched->report = &monitor->report;
		watched->ended = on_ended;
		watched->owner = monitor;
		watched->interval_ms = options->interval_ms;
		watched->unguarded = options->unguarded;
		watched_open(watched);
	}
}

static void summarise(struct monitor *monitor)
{
	struct report_row *rows = calloc((size_t)monitor->count, sizeof(*rows));
	int i;

	if (!rows)
		return;
	for (i = 0; i < monitor->count; i++)
		rows[i] = watched_summary(&monitor->devices[i]);
	report_summary(&monitor->report, rows, monitor->count);
	free(rows);
}

/* A reader that went away has seen what it wanted. */
static enum status output_status(const struct report *report)
{
	if (report->write_error == EPIPE || report->write_error == EBADF)
		return STATUS_OK;
	fprintf(stderr, "mlx5vfio: cannot write: %s\n", strerror(report->write_error));
	return STATUS_USAGE;
}

static enum status exit_status(const struct monitor *monitor)
{
	enum status status = STATUS_OK;
	int i;

	if (monitor->report.write_error)
		return output_status(&monitor->report);
	for (i = 0; i < monitor->count; i++) {
		if (monitor->devices[i].state == WATCHED_DEAD)
			return STATUS_DEVICE_DIED;
		if (monitor->devices[i].state == WATCHED_NOT_OPENED)
			status = STATUS_CANNOT_OPEN;
	}
	return status;
}

static enum status run(struct monitor *monitor, const struct monitor_options *options)
{
	enum status status;

	start_handles(monitor, options->seconds);
	open_devices(monitor, options);
	uv_run(&monitor->loop, UV_RUN_DEFAULT);
	summarise(monitor);
	status = exit_status(monitor);
	/* libuv's destructor would wait for the workers. */
	if (monitor->abandoned)
		_exit((int)status);
	uv_loop_close(&monitor->loop);
	return status;
}

enum status monitor(const struct monitor_options *options)
{
	struct monitor monitor = { .count = options->count, .running = options->count };
	enum status status;
	int error;

	report_init(&monitor.report, stdout, options->json);
	monitor.devices = calloc((size_t)options->count, sizeof(*monitor.devices));
	error = monitor.devices ? uv_loop_init(&monitor.loop) : UV_ENOMEM;
	if (error) {
		fprintf(stderr, "mlx5vfio: %s\n", uv_strerror(error));
		free(monitor.devices);
		return STATUS_CANNOT_OPEN;
	}
	status = run(&monitor, options);
	free(monitor.devices);
	return status;
}

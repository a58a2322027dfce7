/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator's control language (sim/lib/control*.c) and its fault scripts (sim/lib/script.c),
 * on one device that has nothing behind it. Input is a fault script; each of its lines is a command
 * too.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>

#include "sim/lib/script.c"

#include "sim/lib/clock.h"
#include "sim/lib/device.h"
#include "sim/lib/tree_faults.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct eq queue = { .number = 1, .events = UINT64_MAX };
static struct device device = { .index = 0, .open = true, .eqs = { [1] = &queue } };

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* ---- What is behind the device: nothing, but it must be asked for something sensible --------- */

struct device *devices_begin(void)
{
	return &device;
}

struct device *devices_end(void)
{
	return &device + 1;
}

struct device *device_at(unsigned index)
{
	return index ? NULL : &device;
}

void device_foreign_reset(struct device *dev)
{
	require(dev == &device);
}

bool device_step(struct device *dev, uint64_t now, uint64_t *next)
{
	(void)now;
	(void)next;
	return dev->open;
}

bool device_settled(const struct device *dev)
{
	return dev->open;
}

void device_refresh_stats(struct device *dev)
{
	dev->stats.opens++;
}

void registers_publish(struct device *dev)
{
	require(dev->faults.nic == NIC_FULL || dev->faults.nic == NIC_DISABLED ||
		dev->faults.nic == NIC_RESET);
}

void notices_request(struct device *dev, uint64_t every)
{
	dev->notices.request_every = every;
}

void notices_error(struct device *dev)
{
	require(dev == &device);
}

void notices_fatal_error(struct device *dev, uint64_t after)
{
	dev->notices.offline_due = after;
}

int notices_unbind(struct device *dev)
{
	dev->notices.unbinding = true;
	return 0;
}

struct eq *eq_for(struct device *dev, enum event_type type)
{
	require(dev == &device && (unsigned)type < 64);
	return &queue;
}

void eq_overrun(struct device *dev, struct eq *eq)
{
	require(dev == &device && eq == &queue);
}

void eq_doubt_arms(struct device *dev)
{
	require(dev == &device);
}

void eq_doorbells(struct device *dev, uint64_t now)
{
	require(dev == &device);
	(void)now;
}

void eq_post(struct device *dev, struct eq *eq, enum event_type type, uint8_t sub_type,
	     const uint8_t data[28])
{
	require(dev == &device && eq == &queue && (unsigned)type < 64 && data);
	(void)sub_type;
}

static void check_job(const struct event_job *job)
{
	require(job->type < 64 && job->left);
}

int event_job_add(struct device *dev, const struct event_job *job)
{
	require(dev == &device && job->queue == queue.number);
	check_job(job);
	return 0;
}

int event_job_add_all(struct device *dev, struct event_job job)
{
	require(dev == &device);
	if (job.left)
		check_job(&job);
	return 0;
}

struct event_job port_job(bool up)
{
	return (struct event_job){ .type = EVENT_PORT, .sub_type = up ? 4 : 1, .left = 1 };
}

struct eq *cq_reports_to(const struct device *dev, uint32_t number)
{
	require(dev == &device && number <= 0xffffff);
	return number == 1 ? &queue : NULL;
}

void interrupt_raise(struct device *dev, unsigned vector)
{
	require(dev == &device && vector < MSIX_VECTORS);
}

int page_job_add(struct device *dev, const struct page_job *job)
{
	require(dev == &device && job->pages && job->left);
	return 0;
}

void page_jobs_stop(struct device *dev)
{
	dev->job_count = 0;
}

void port_event(struct device *dev, bool up)
{
	require(dev == &device);
	(void)up;
}

/* A driver's name becomes the name of a directory. */
static int check_driver(const struct device *dev, const char *driver)
{
	require(dev == &device);
	require(!driver || (!strchr(driver, '/') && driver[0] != '.' && strlen(driver) < 32));
	return 0;
}

int tree_bind(const struct device *dev, const char *driver)
{
	return check_driver(dev, driver);
}

int tree_add_member(const struct device *dev, const char *driver)
{
	return check_driver(dev, driver);
}

int tree_drop_group(const struct device *dev)
{
	return check_driver(dev, NULL);
}

int tree_drop_group_file(const struct device *dev)
{
	return check_driver(dev, NULL);
}

int tree_permit_group(const struct device *dev, bool permit)
{
	(void)permit;
	return check_driver(dev, NULL);
}

int tree_permit_container(bool permit)
{
	(void)permit;
	return 0;
}

int tree_restore(const struct device *dev)
{
	return check_driver(dev, NULL);
}

uint64_t clock_now(void)
{
	return 0;
}

void clock_step_wall(int64_t ms)
{
	require(ms > -INT64_C(10000000000000) && ms < INT64_C(10000000000000));
}

void clock_rate_wall(double factor)
{
	require(isfinite(factor) && factor >= 0);
}

void sleep_rate(double factor)
{
	require(isfinite(factor) && factor > 0);
}

void report_line(const char *format, ...)
{
	require(format != NULL);
}

const struct settings *settings(void)
{
	static const struct settings none;

	return &none;
}

const struct real *real(void)
{
	abort();
}

/* ---- The commands --------------------------------------------------------------------------- */

/* A line that is refused has changed nothing; a reply fits. */
static void run_command(const char *line)
{
	struct faults before = device.faults;
	char reply[CONTROL_REPLY];
	struct control_wait wait;
	int error;

	if (control_takes_time(line, &wait)) {
		control_done(&wait);
		require(control_late(&wait) != NULL);
	}
	error = control_run(line, reply, sizeof(reply));
	require(error <= 0 && memchr(reply, '\0', sizeof(reply)));
	if (error == -EINVAL)
		require(!memcmp(&before, &device.faults, sizeof(before)) && reply[0]);
	if (control_check(line, reply, sizeof(reply)) && line[strspn(line, " \t")])
		require(error < 0 || line[strspn(line, " \t")] == '#' ||
			strchr("\r\n", line[strspn(line, " \t")]));
}

static void run_script(char *text)
{
	uint64_t next = UINT64_MAX;
	unsigned number = 1;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		run_command(line);
		add_line(line, number++);
	}
	if (script.count)
		qsort(script.lines, script.count, sizeof(*script.lines), by_time);
	script_run(UINT64_MAX / 2, &next);
	require(!script.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	memset(&device.faults, 0, sizeof(device.faults));
	run_script(text);
	free(text);
	return 0;
}

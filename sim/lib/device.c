/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a device: opened, stepped, closed; what it counts. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "clock.h"
#include "config_space.h"
#include "device.h"
#include "engine.h"
#include "report.h"
#include "settings.h"
#include "vfio.h"

enum {
	TOLD_VIOLATIONS = 10,
};

/* As measured on a ConnectX. */
#define RESET_TIME (110 * NS_PER_MS)

static struct device *devices;
static unsigned device_count;

bool devices_init(unsigned count)
{
	devices = calloc(count ? count : 1, sizeof(*devices));
	if (!devices)
		return false;
	device_count = count;
	for (unsigned i = 0; i < count; i++) {
		struct device *dev = &devices[i];

		dev->index = i;
		sim_device_name(i, dev->name);
		dev->random = settings()->seed * UINT64_C(0x9e3779b97f4a7c15) + i + 1;
		dev->fd = dev->group_fd = dev->lock_fd = -1;
	}
	return true;
}

void devices_forget(void)
{
	devices = NULL;
	device_count = 0;
}

struct device *devices_begin(void)
{
	return devices;
}

struct device *devices_end(void)
{
	return devices + device_count;
}

struct device *device_at(unsigned index)
{
	return index < device_count ? &devices[index] : NULL;
}

void violation(struct device *dev, const char *format, ...)
{
	char text[160];
	va_list args;

	if (++dev->stats.violations > TOLD_VIOLATIONS)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	report_line("%s: violation: %s", dev->name, text);
}

static void forget_queues(struct device *dev)
{
	for (unsigned i = 0; i < MAX_EQS; i++) {
		free(dev->eqs[i]);
		dev->eqs[i] = NULL;
	}
	dev->uar_count = 0;
	dev->event_job_count = 0;
}

static void forget_objects(struct device *dev)
{
	idset_clear(&dev->pds);
	idset_clear(&dev->mkeys);
	idset_clear(&dev->umems);
	idset_clear(&dev->domains);
	idset_clear(&dev->cqs);
	idset_clear(&dev->qps);
	cqs_forget(dev);
}

static void forget_pages(struct device *dev)
{
	if (dev->container)
		for (size_t i = 0; i < dev->container->count; i++)
			dev->container->maps[i].pages_held = 0;
	pageset_clear(&dev->startup);
	pageset_clear(&dev->given);
	page_jobs_stop(dev);
	dev->unanswered = 0;
}

/* A function-level reset of what firmware knows; the registers are restored by the caller. */
static void forget_everything(struct device *dev)
{
	dev->enabled = dev->active = dev->rescan = false;
	dev->seen = 0;
	memset(dev->slots, 0, sizeof(dev->slots));
	forget_queues(dev);
	forget_objects(dev);
	forget_pages(dev);
	port_reset(dev);
}

static void cure(struct faults *faults)
{
	faults->syndrome = 0;
	faults->extended = 0;
	faults->recovery = false;
	faults->nic = NIC_FULL;
	faults->offline = faults->frozen = faults->hung = false;
}

/* Decoding is off during the reset; afterwards firmware knows of no queue, and the program not why. */
void device_foreign_reset(struct device *dev)
{
	device_reset(dev);
	dev->reset_unseen = true;
	registers_hide_until(dev, clock_now() + RESET_TIME);
}

void device_reset(struct device *dev)
{
	forget_everything(dev);
	dev->reset_unseen = false;
	cure(&dev->faults);
	registers_reset(dev);
}

int device_open(struct device *dev, int fd)
{
	uint64_t opens = dev->stats.opens;
	void *bar;

	if (config_space_create(dev, fd))
		return -errno;
	bar = mmap(NULL, (size_t)BAR_PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   config_space_bar_offset(dev));
	if (bar == MAP_FAILED)
		return -errno;
	dev->bar = bar;
	dev->fd = fd;
	dev->open = true;
	dev->msix_on = dev->reset_unseen = false;
	for (unsigned i = 0; i < MSIX_VECTORS; i++)
		dev->msix[i] = -1;
	dev->error_irq = dev->request_irq = -1;
	memset(&dev->stats, 0, sizeof(dev->stats));
	dev->dropped = 0;
	port_reset(dev);
	dev->stats.opens = opens + 1;
	/* Faults that were set while it was closed hold for this opening. */
	registers_reset(dev);
	engine_kick();
	return 0;
}

void device_close(struct device *dev)
{
	device_refresh_stats(dev);
	report_device(dev, "closed");
	forget_everything(dev);
	cure(&dev->faults);
	device_irqs_clear(dev);
	munmap(dev->bar, (size_t)BAR_PAGES * PAGE_SIZE);
	dev->bar = NULL;
	dev->open = dev->hidden = false;
	dev->fd = -1;
	notices_end(dev);
}

bool device_step(struct device *dev, uint64_t now, uint64_t *next)
{
	bool busy = notices_step(dev, now, next);

	busy |= registers_step(dev, now);
	if (dev->hidden)
		return busy;
	/* The program writes its doorbells in this order: an answer, then the acknowledgement. */
	busy |= eqs_step(dev, now);
	busy |= commands_step(dev, now, next);
	busy |= page_jobs_step(dev, now, next);
	busy |= event_jobs_step(dev, now, next);
	return busy;
}

bool device_settled(const struct device *dev)
{
	if (!dev->open)
		return true;
	if (dev->job_count || dev->event_job_count)
		return false;
	if (!device_blocked(dev) && (commands_waiting(dev) || dev->unanswered || dev->rescan))
		return false;
	for (unsigned i = 1; i < MAX_EQS; i++)
		if (dev->eqs[i] && !dev->eqs[i]->broken && eq_backlog(dev->eqs[i]))
			return false;
	return true;
}

void device_refresh_stats(struct device *dev)
{
	if (dev->open)
		dev->stats.dma_maps = dev->container->count;
}

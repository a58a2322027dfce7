/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel tells a program about its device, over two interrupts of VFIO that the device
 * itself knows nothing of: that it wants the device back, and that a PCI error was signalled.
 */
#include "clock.h"
#include "device.h"
#include "engine.h"
#include "tree_faults.h"
#include "vfio.h"

/* As measured; the kernel's own number is 10 s. */
#define REQUEST_PERIOD (10240 * NS_PER_MS)

void notices_request(struct device *dev, uint64_t every)
{
	dev->notices.request_every = every ? every : REQUEST_PERIOD;
	dev->notices.request_due = clock_now() + dev->notices.request_every;
	eventfd_trigger(dev->request_irq);
}

void notices_error(struct device *dev)
{
	eventfd_trigger(dev->error_irq);
}

void notices_fatal_error(struct device *dev, uint64_t after)
{
	notices_error(dev);
	dev->notices.offline_due = clock_now() + after;
}

/* The kernel waits for the close of an open device. */
int notices_unbind(struct device *dev)
{
	if (!dev->open)
		return tree_bind(dev, NULL);
	dev->notices.unbinding = true;
	if (!dev->notices.request_every)
		notices_request(dev, 0);
	return 0;
}

static void lower(uint64_t *next, uint64_t due)
{
	if (due && due < *next)
		*next = due;
}

bool notices_step(struct device *dev, uint64_t now, uint64_t *next)
{
	struct notices *notices = &dev->notices;
	bool busy = false;

	if (notices->request_every && now >= notices->request_due) {
		notices->request_due = now + notices->request_every;
		eventfd_trigger(dev->request_irq);
		busy = true;
	}
	if (notices->offline_due && now >= notices->offline_due) {
		notices->offline_due = 0;
		dev->faults.offline = true;
		registers_publish(dev);
		busy = true;
	}
	lower(next, notices->request_due);
	lower(next, notices->offline_due);
	return busy;
}

void notices_end(struct device *dev)
{
	bool unbinding = dev->notices.unbinding;

	dev->notices = (struct notices){ 0 };
	if (!unbinding)
		return;
	tree_bind(dev, NULL);
	engine_kick(); /* somebody may wait for it */
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the control language in which not the device acts but the kernel or its operator. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "clock.h"
#include "control.h"
#include "control_verbs.h"
#include "device.h"
#include "tree_faults.h"

enum {
	MAX_DRIVER = 32,
};

/* The error interrupt comes first, and the registers die a little later. */
#define FATAL_AFTER (5 * NS_PER_MS)

int run_remove_request(struct device *dev, struct request *req)
{
	uint64_t every = 0;

	if (req->args[0] && (strcmp(req->args[0], "every") || !req->args[1] ||
			     !control_time(req->args[1], &every) || !every))
		return -EINVAL;
	notices_request(dev, every);
	return 0;
}

int run_aer(struct device *dev, struct request *req)
{
	uint64_t after = FATAL_AFTER;

	if (!req->args[0]) {
		notices_error(dev);
		return 0;
	}
	if (strcmp(req->args[0], "fatal") || (req->args[1] && !control_time(req->args[1], &after)))
		return -EINVAL;
	notices_fatal_error(dev, after);
	return 0;
}

int run_foreign_reset(struct device *dev, struct request *req)
{
	(void)req;
	device_foreign_reset(dev);
	return 0;
}

/* The time is for whoever waits. */
int run_unbind(struct device *dev, struct request *req)
{
	uint64_t time;

	if (req->args[0] && !control_time(req->args[0], &time))
		return -EINVAL;
	return notices_unbind(dev);
}

/* It becomes the name of a directory. */
static bool usable_driver(const char *name)
{
	return strlen(name) < MAX_DRIVER && name[0] != '.' && !strchr(name, '/');
}

int run_bind(struct device *dev, struct request *req)
{
	const char *driver = req->args[0] ? req->args[0] : "vfio-pci";

	if (!usable_driver(driver))
		return -EINVAL;
	if (!dev->open)
		return tree_bind(dev, driver);
	snprintf(req->reply, req->size, "the device is open");
	return -EBUSY;
}

int run_group_member(struct device *dev, struct request *req)
{
	const char *driver = req->args[0] ? req->args[0] : "mlx5_core";

	if (!usable_driver(driver))
		return -EINVAL;
	return tree_add_member(dev, strcmp(driver, "none") ? driver : NULL);
}

int run_no_group(struct device *dev, struct request *req)
{
	(void)req;
	return tree_drop_group(dev);
}

int run_no_group_file(struct device *dev, struct request *req)
{
	(void)req;
	return tree_drop_group_file(dev);
}

int run_deny(struct device *dev, struct request *req)
{
	if (!req->args[0])
		return tree_permit_group(dev, false);
	return strcmp(req->args[0], "container") ? -EINVAL : tree_permit_container(false);
}

int run_allow(struct device *dev, struct request *req)
{
	int error = tree_permit_group(dev, true);

	(void)req;
	return error ? error : tree_permit_container(true);
}

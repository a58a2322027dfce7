/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the control language. */
#ifndef SIM_CONTROL_VERBS_H
#define SIM_CONTROL_VERBS_H

#include <stdbool.h>
#include <stddef.h>

struct device;

struct request {
	char **args; /* the words after the device, or after the name; they end with NULL */
	char *reply;
	size_t size;
};

struct verb {
	const char *name;
	bool on_device; /* the first word after the name is a device */
	bool needs_open;
	int least, most; /* words after the name */
	int (*run)(struct device *dev, struct request *req);
};

/* control_faults.c */
int run_fatal(struct device *dev, struct request *req);
int run_syndrome(struct device *dev, struct request *req);
int run_nic_disabled(struct device *dev, struct request *req);
int run_nic_reset(struct device *dev, struct request *req);
int run_pci_offline(struct device *dev, struct request *req);
int run_freeze(struct device *dev, struct request *req);
int run_thaw(struct device *dev, struct request *req);
int run_hang(struct device *dev, struct request *req);
int run_unhang(struct device *dev, struct request *req);
int run_delay(struct device *dev, struct request *req);
int run_fail(struct device *dev, struct request *req);
int run_lose_interrupt(struct device *dev, struct request *req);
int run_init_stuck(struct device *dev, struct request *req);
int run_map_fail(struct device *dev, struct request *req);
int run_memlock(struct device *dev, struct request *req);
int run_heal(struct device *dev, struct request *req);

/* control_events.c */
int run_port(struct device *dev, struct request *req);
int run_cq_event(struct device *dev, struct request *req);
int run_cq_error(struct device *dev, struct request *req);
int run_qp_event(struct device *dev, struct request *req);
int run_events(struct device *dev, struct request *req);
int run_overrun(struct device *dev, struct request *req);

/* control_kernel.c */
int run_remove_request(struct device *dev, struct request *req);
int run_aer(struct device *dev, struct request *req);
int run_foreign_reset(struct device *dev, struct request *req);
int run_unbind(struct device *dev, struct request *req);
int run_bind(struct device *dev, struct request *req);
int run_group_member(struct device *dev, struct request *req);
int run_no_group(struct device *dev, struct request *req);
int run_no_group_file(struct device *dev, struct request *req);
int run_deny(struct device *dev, struct request *req);
int run_allow(struct device *dev, struct request *req);

const struct verb *verb_find(const char *name);

#endif

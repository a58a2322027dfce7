/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the control language that set and end faults. */
#include <errno.h>
#include <string.h>
#include "control.h"
#include "control_args.h"
#include "control_verbs.h"
#include "device.h"
#include "tree_faults.h"

static int set_syndrome(struct device *dev, char **args, uint64_t syndrome, bool recovery)
{
	uint64_t extended = 0;

	if (!parse_optional(args[0], 0, 0xff, &syndrome))
		return -EINVAL;
	if (args[0] && !parse_optional(args[1], 0, 0xffff, &extended))
		return -EINVAL;
	dev->faults.syndrome = (uint8_t)syndrome;
	dev->faults.extended = (uint16_t)extended;
	dev->faults.recovery = recovery && syndrome;
	registers_publish(dev);
	return 0;
}

int run_fatal(struct device *dev, struct request *req)
{
	return set_syndrome(dev, req->args, 1, true);
}

int run_syndrome(struct device *dev, struct request *req)
{
	return set_syndrome(dev, req->args, 0, false);
}

int run_nic_disabled(struct device *dev, struct request *req)
{
	(void)req;
	dev->faults.nic = NIC_DISABLED;
	registers_publish(dev);
	return 0;
}

int run_nic_reset(struct device *dev, struct request *req)
{
	(void)req;
	dev->faults.nic = NIC_RESET;
	registers_publish(dev);
	return 0;
}

int run_pci_offline(struct device *dev, struct request *req)
{
	(void)req;
	dev->faults.offline = true;
	registers_publish(dev);
	return 0;
}

int run_freeze(struct device *dev, struct request *req)
{
	(void)req;
	dev->faults.frozen = true;
	return 0;
}

int run_thaw(struct device *dev, struct request *req)
{
	(void)req;
	dev->faults.frozen = false;
	return 0;
}

int run_hang(struct device *dev, struct request *req)
{
	(void)req;
	dev->faults.hung = true;
	return 0;
}

int run_unhang(struct device *dev, struct request *req)
{
	(void)req;
	dev->faults.hung = false;
	dev->rescan = true;
	return 0;
}

int run_delay(struct device *dev, struct request *req)
{
	return control_time(req->args[0], &dev->faults.delay) ? 0 : -EINVAL;
}

static struct fail_rule *rule_for(struct device *dev, int opcode)
{
	struct fail_rule *spare = NULL;

	for (unsigned i = 0; i < MAX_FAIL_RULES; i++) {
		struct fail_rule *rule = &dev->faults.fail[i];

		if (rule->left && rule->opcode == opcode)
			return rule;
		if (!rule->left && !spare)
			spare = rule;
	}
	return spare;
}

int run_fail(struct device *dev, struct request *req)
{
	uint64_t opcode = 0, status, count = 1;
	bool any = !strcmp(req->args[0], "*");
	struct fail_rule *rule;

	if (!any && !parse_number(req->args[0], 16, 0xffff, &opcode))
		return -EINVAL;
	if (!parse_number(req->args[1], 0, 0xff, &status) ||
	    !parse_optional(req->args[2], 0, UINT64_MAX, &count))
		return -EINVAL;
	rule = rule_for(dev, any ? ANY_OPCODE : (int)opcode);
	if (!rule)
		return -ENOSPC;
	*rule = (struct fail_rule){ any ? ANY_OPCODE : (int)opcode, (uint8_t)status, count };
	return 0;
}

int run_lose_interrupt(struct device *dev, struct request *req)
{
	uint64_t count = 1;

	if (!parse_optional(req->args[0], 0, UINT64_MAX, &count))
		return -EINVAL;
	dev->faults.lose_interrupts = count;
	return 0;
}

int run_init_stuck(struct device *dev, struct request *req)
{
	bool on = !strcmp(req->args[0], "on");

	if (!on && strcmp(req->args[0], "off"))
		return -EINVAL;
	dev->faults.init_stuck = on;
	registers_publish(dev);
	return 0;
}

int run_map_fail(struct device *dev, struct request *req)
{
	uint64_t count = 1;

	if (!parse_optional(req->args[0], 0, UINT64_MAX, &count))
		return -EINVAL;
	dev->faults.map_fail = count;
	return 0;
}

int run_memlock(struct device *dev, struct request *req)
{
	bool limited = strcmp(req->args[0], "off") != 0;
	uint64_t bytes = 0;

	if (limited && !parse_number(req->args[0], 0, UINT64_MAX, &bytes))
		return -EINVAL;
	dev->faults.memory_limited = limited;
	dev->faults.memory = bytes;
	return 0;
}

int run_heal(struct device *dev, struct request *req)
{
	(void)req;
	memset(&dev->faults, 0, sizeof(dev->faults));
	dev->notices.offline_due = 0;
	dev->rescan = dev->open;
	eq_doubt_arms(dev);
	registers_publish(dev);
	return tree_restore(dev);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What each command of the control language does to a device. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "clock.h"
#include "control.h"
#include "control_verbs.h"
#include "device.h"
#include "settings.h"

static bool parse_number(const char *word, int base, uint64_t most, uint64_t *value)
{
	char *end;

	if (!word || !isxdigit((unsigned char)*word))
		return false;
	errno = 0;
	*value = strtoull(word, &end, base);
	return !*end && !errno && *value <= most;
}

/* A missing word leaves the value as it is. */
static bool parse_optional(const char *word, int base, uint64_t most, uint64_t *value)
{
	return !word || parse_number(word, base, most, value);
}

static int add_page_job(struct device *dev, char **args, int32_t sign)
{
	uint64_t pages = 0, every = 0;
	struct page_job job = { .left = 1 };

	if (!parse_number(*args++, 0, 1 << 20, &pages) || !pages)
		return -EINVAL;
	if (*args && isdigit((unsigned char)**args))
		if (!parse_number(*args++, 0, UINT32_MAX, &job.left))
			return -EINVAL;
	for (; *args; args++) {
		if (!strcmp(*args, "spaced"))
			job.spaced = true;
		else if (strcmp(*args, "every") || !args[1] || !control_time(*++args, &every))
			return -EINVAL;
	}
	job.every = every;
	job.pages = (int32_t)pages * sign;
	return job.left ? page_job_add(dev, &job) : 0;
}

static int run_page_request(struct device *dev, char **args, struct reply *reply)
{
	(void)reply;
	return add_page_job(dev, args, 1);
}

static int run_reclaim(struct device *dev, char **args, struct reply *reply)
{
	(void)reply;
	return add_page_job(dev, args, -1);
}

static int run_requests_stop(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	page_jobs_stop(dev);
	return 0;
}

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

static int run_fatal(struct device *dev, char **args, struct reply *reply)
{
	(void)reply;
	return set_syndrome(dev, args, 1, true);
}

static int run_syndrome(struct device *dev, char **args, struct reply *reply)
{
	(void)reply;
	return set_syndrome(dev, args, 0, false);
}

static int run_nic_disabled(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	dev->faults.nic = NIC_DISABLED;
	registers_publish(dev);
	return 0;
}

static int run_nic_reset(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	dev->faults.nic = NIC_RESET;
	registers_publish(dev);
	return 0;
}

static int run_pci_offline(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	dev->faults.offline = true;
	registers_publish(dev);
	return 0;
}

static int run_freeze(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	dev->faults.frozen = true;
	return 0;
}

static int run_thaw(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	dev->faults.frozen = false;
	return 0;
}

static int run_hang(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	dev->faults.hung = true;
	return 0;
}

static int run_unhang(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	dev->faults.hung = false;
	dev->rescan = true;
	return 0;
}

static int run_delay(struct device *dev, char **args, struct reply *reply)
{
	(void)reply;
	return control_time(args[0], &dev->faults.delay) ? 0 : -EINVAL;
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

static int run_fail(struct device *dev, char **args, struct reply *reply)
{
	uint64_t opcode = 0, status, count = 1;
	bool any = !strcmp(args[0], "*");
	struct fail_rule *rule;

	(void)reply;
	if (!any && !parse_number(args[0], 16, 0xffff, &opcode))
		return -EINVAL;
	if (!parse_number(args[1], 0, 0xff, &status) ||
	    !parse_optional(args[2], 0, UINT64_MAX, &count))
		return -EINVAL;
	rule = rule_for(dev, any ? ANY_OPCODE : (int)opcode);
	if (!rule)
		return -ENOSPC;
	*rule = (struct fail_rule){ any ? ANY_OPCODE : (int)opcode, (uint8_t)status, count };
	return 0;
}

static int run_lose_interrupt(struct device *dev, char **args, struct reply *reply)
{
	uint64_t count = 1;

	(void)reply;
	if (!parse_optional(args[0], 0, UINT64_MAX, &count))
		return -EINVAL;
	dev->faults.lose_interrupts = count;
	return 0;
}

static int run_spurious(struct device *dev, char **args, struct reply *reply)
{
	uint64_t vector = 0;

	(void)reply;
	if (!parse_optional(args[0], 0, MSIX_VECTORS - 1, &vector))
		return -EINVAL;
	interrupt_raise(dev, (unsigned)vector);
	return 0;
}

static int run_port(struct device *dev, char **args, struct reply *reply)
{
	bool up = !strcmp(args[0], "up");

	(void)reply;
	if (!up && strcmp(args[0], "down"))
		return -EINVAL;
	port_event(dev, up);
	return 0;
}

static int run_overrun(struct device *dev, char **args, struct reply *reply)
{
	struct eq *eq = eq_for(dev, EVENT_COMMAND);

	(void)args;
	if (eq) {
		eq_overrun(dev, eq);
		return 0;
	}
	snprintf(reply->text, reply->size, "the device has no asynchronous queue");
	return -ENETDOWN;
}

static int run_init_stuck(struct device *dev, char **args, struct reply *reply)
{
	bool on = !strcmp(args[0], "on");

	(void)reply;
	if (!on && strcmp(args[0], "off"))
		return -EINVAL;
	dev->faults.init_stuck = on;
	registers_publish(dev);
	return 0;
}

static int run_map_fail(struct device *dev, char **args, struct reply *reply)
{
	uint64_t count = 1;

	(void)reply;
	if (!parse_optional(args[0], 0, UINT64_MAX, &count))
		return -EINVAL;
	dev->faults.map_fail = count;
	return 0;
}

static int set_permission(struct device *dev, mode_t mode)
{
	char path[sizeof(settings()->dir) + 32];

	snprintf(path, sizeof(path), "%s/dev/vfio/%u", settings()->dir,
		 SIM_FIRST_GROUP + dev->index);
	return chmod(path, mode) ? -errno : 0;
}

static int run_deny(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	dev->faults.denied = true;
	return set_permission(dev, 0);
}

static int run_allow(struct device *dev, char **args, struct reply *reply)
{
	(void)args;
	(void)reply;
	dev->faults.denied = false;
	return set_permission(dev, 0666);
}

static int run_heal(struct device *dev, char **args, struct reply *reply)
{
	int error = dev->faults.denied ? run_allow(dev, args, reply) : 0;

	memset(&dev->faults, 0, sizeof(dev->faults));
	dev->rescan = dev->open;
	registers_publish(dev);
	return error;
}

static int run_clock_step(struct device *dev, char **args, struct reply *reply)
{
	char *end;
	long long ms;

	(void)dev;
	(void)reply;
	errno = 0;
	ms = strtoll(args[0], &end, 10);
	if (*end || end == args[0] || errno || ms > INT64_C(4000000000000) ||
	    ms < -INT64_C(4000000000000))
		return -EINVAL;
	clock_step_wall(ms);
	return 0;
}

static int run_clock_rate(struct device *dev, char **args, struct reply *reply)
{
	char *end;
	double factor = strtod(args[0], &end);

	(void)dev;
	(void)reply;
	if (*end || end == args[0] || !(factor >= 0 && factor <= 1e6))
		return -EINVAL;
	clock_rate_wall(factor);
	return 0;
}

static int run_stats(struct device *dev, char **args, struct reply *reply)
{
	const struct mlx5vfio_sim_stats *s = &dev->stats;
	uint64_t next = UINT64_MAX;

	(void)args;
	if (dev->open)
		device_step(dev, clock_now(), &next);
	device_refresh_stats(dev);
	snprintf(reply->text, reply->size,
		 "open=%d opens=%" PRIu64 " commands=%" PRIu64 " eqes=%" PRIu64 " consumed=%" PRIu64
		 " interrupts=%" PRIu64 " pages_requested=%" PRIu64 " pages_given=%" PRIu64
		 " pages_startup=%" PRIu64 " pages_asked_back=%" PRIu64 " pages_returned=%" PRIu64
		 " requests_pending=%" PRIu64 " requests_dropped=%" PRIu64 " dma_maps=%" PRIu64
		 " violations=%" PRIu64,
		 dev->open, s->opens, s->commands, s->eqes, s->consumed, s->interrupts,
		 s->pages_requested, s->pages_given, s->pages_startup, s->pages_asked_back,
		 s->pages_returned, s->requests_pending, dev->dropped, s->dma_maps, s->violations);
	return 0;
}

/* Whoever takes lines waits for it; here only its form is wrong, or it stands in a script. */
static int run_settle(struct device *dev, char **args, struct reply *reply)
{
	(void)dev;
	(void)args;
	snprintf(reply->text, reply->size, "settle takes a time, and has no place in a script");
	return -EINVAL;
}

static const struct verb verbs[] = {
	{ "page-request", true, true, 2, 6, run_page_request },
	{ "reclaim", true, true, 2, 6, run_reclaim },
	{ "requests-stop", true, false, 1, 1, run_requests_stop },
	{ "fatal", true, false, 1, 3, run_fatal },
	{ "syndrome", true, false, 2, 3, run_syndrome },
	{ "nic-disabled", true, false, 1, 1, run_nic_disabled },
	{ "nic-reset", true, false, 1, 1, run_nic_reset },
	{ "pci-offline", true, false, 1, 1, run_pci_offline },
	{ "freeze", true, false, 1, 1, run_freeze },
	{ "thaw", true, false, 1, 1, run_thaw },
	{ "hang", true, false, 1, 1, run_hang },
	{ "unhang", true, false, 1, 1, run_unhang },
	{ "delay", true, false, 2, 2, run_delay },
	{ "fail", true, false, 3, 4, run_fail },
	{ "lose-interrupt", true, false, 1, 2, run_lose_interrupt },
	{ "spurious", true, true, 1, 2, run_spurious },
	{ "port", true, true, 2, 2, run_port },
	{ "overrun", true, true, 1, 1, run_overrun },
	{ "init-stuck", true, false, 2, 2, run_init_stuck },
	{ "map-fail", true, false, 1, 2, run_map_fail },
	{ "deny", true, false, 1, 1, run_deny },
	{ "allow", true, false, 1, 1, run_allow },
	{ "heal", true, false, 1, 1, run_heal },
	{ "clock-step", false, false, 1, 1, run_clock_step },
	{ "clock-rate", false, false, 1, 1, run_clock_rate },
	{ "stats", true, false, 1, 1, run_stats },
	{ "settle", true, false, 2, 2, run_settle },
};

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

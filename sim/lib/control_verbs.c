/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the control language, but for the faults and events: page requests, the clock, questions. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "control.h"
#include "control_args.h"
#include "control_verbs.h"
#include "device.h"

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

static int run_page_request(struct device *dev, struct request *req)
{
	return add_page_job(dev, req->args, 1);
}

static int run_reclaim(struct device *dev, struct request *req)
{
	return add_page_job(dev, req->args, -1);
}

static int run_requests_stop(struct device *dev, struct request *req)
{
	(void)req;
	page_jobs_stop(dev);
	return 0;
}

static int run_spurious(struct device *dev, struct request *req)
{
	uint64_t vector = 0;

	if (!parse_optional(req->args[0], 0, MSIX_VECTORS - 1, &vector))
		return -EINVAL;
	interrupt_raise(dev, (unsigned)vector);
	return 0;
}

static int run_clock_step(struct device *dev, struct request *req)
{
	char *end;
	long long ms;

	(void)dev;
	errno = 0;
	ms = strtoll(req->args[0], &end, 10);
	if (*end || end == req->args[0] || errno || ms > INT64_C(4000000000000) ||
	    ms < -INT64_C(4000000000000))
		return -EINVAL;
	clock_step_wall(ms);
	return 0;
}

static int run_clock_rate(struct device *dev, struct request *req)
{
	char *end;
	double factor = strtod(req->args[0], &end);

	(void)dev;
	if (*end || end == req->args[0] || !(factor >= 0 && factor <= 1e6))
		return -EINVAL;
	clock_rate_wall(factor);
	return 0;
}

static int run_sleep_rate(struct device *dev, struct request *req)
{
	char *end;
	double factor = strtod(req->args[0], &end);

	(void)dev;
	if (*end || end == req->args[0] || !(factor > 0 && factor <= 1e6))
		return -EINVAL;
	sleep_rate(factor);
	return 0;
}

static int run_stats(struct device *dev, struct request *req)
{
	const struct mlx5vfio_sim_stats *s = &dev->stats;
	uint64_t next = UINT64_MAX;

	if (dev->open)
		device_step(dev, clock_now(), &next);
	device_refresh_stats(dev);
	snprintf(req->reply, req->size,
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
static int run_settle(struct device *dev, struct request *req)
{
	(void)dev;
	snprintf(req->reply, req->size, "settle takes a time, and has no place in a script");
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
	{ "port", true, true, 2, 5, run_port },
	{ "cq-event", true, true, 2, 3, run_cq_event },
	{ "cq-error", true, true, 2, 3, run_cq_error },
	{ "qp-event", true, true, 2, 3, run_qp_event },
	{ "events", true, true, 3, 3, run_events },
	{ "overrun", true, true, 1, 2, run_overrun },
	{ "foreign-reset", true, true, 1, 1, run_foreign_reset },
	{ "remove-request", true, true, 1, 3, run_remove_request },
	{ "unbind", true, false, 1, 2, run_unbind },
	{ "bind", true, false, 1, 2, run_bind },
	{ "aer", true, true, 1, 3, run_aer },
	{ "init-stuck", true, false, 2, 2, run_init_stuck },
	{ "map-fail", true, false, 1, 2, run_map_fail },
	{ "memlock", true, false, 2, 2, run_memlock },
	{ "group-member", true, false, 1, 2, run_group_member },
	{ "no-group", true, false, 1, 1, run_no_group },
	{ "no-group-file", true, false, 1, 1, run_no_group_file },
	{ "deny", true, false, 1, 2, run_deny },
	{ "allow", true, false, 1, 1, run_allow },
	{ "heal", true, false, 1, 1, run_heal },
	{ "clock-step", false, false, 1, 1, run_clock_step },
	{ "clock-rate", false, false, 1, 1, run_clock_rate },
	{ "sleep-rate", false, false, 1, 1, run_sleep_rate },
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

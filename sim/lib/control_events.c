/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the control language that make events on event queues. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "bytes.h"
#include "clock.h"
#include "control.h"
#include "control_args.h"
#include "control_verbs.h"
#include "device.h"

enum {
	DATA_CQ_ERROR_NUMBER = 0,
	DATA_CQ_ERROR_SYNDROME = 11,
	DATA_NUMBER = 24, /* of the queue: completions, events of work queues */
	DATA_SIZE = 28,
	MAX_NUMBER = 0xffffff,
	MAX_TYPE = 63,
	CQ_OVERRUN = 1,
};

/* What the program rang before the command holds for its events. */
static void look_at_doorbells(struct device *dev)
{
	if (!dev->hidden)
		eq_doorbells(dev, clock_now());
}

static int nobody_asked(struct request *req)
{
	snprintf(req->reply, req->size, "no event queue asked for this type");
	return -ENETDOWN;
}

static int post_to_all(struct device *dev, enum event_type type, const uint8_t data[DATA_SIZE],
		       struct request *req)
{
	bool any = false;

	look_at_doorbells(dev);
	for (unsigned i = 1; i < MAX_EQS; i++) {
		if (!dev->eqs[i] || !(dev->eqs[i]->events >> type & 1))
			continue;
		eq_post(dev, dev->eqs[i], type, 0, data);
		any = true;
	}
	return any ? 0 : nobody_asked(req);
}

int run_cq_event(struct device *dev, struct request *req)
{
	struct event_job job = { .type = EVENT_COMPLETION, .left = 1 };
	uint64_t number;
	const struct eq *eq;

	if (!parse_number(req->args[0], 0, MAX_NUMBER, &number) ||
	    !parse_optional(req->args[1], 0, UINT32_MAX, &job.left))
		return -EINVAL;
	eq = cq_reports_to(dev, (uint32_t)number);
	if (!eq) {
		snprintf(req->reply, req->size, "there is no such completion queue");
		return -ENETDOWN;
	}
	job.queue = eq->number;
	put_be32(job.data + DATA_NUMBER, (uint32_t)number);
	return job.left ? event_job_add(dev, &job) : 0;
}

int run_cq_error(struct device *dev, struct request *req)
{
	uint64_t number, syndrome = CQ_OVERRUN;
	uint8_t data[DATA_SIZE] = { 0 };

	if (!parse_number(req->args[0], 0, MAX_NUMBER, &number) ||
	    !parse_optional(req->args[1], 0, 0xff, &syndrome))
		return -EINVAL;
	put_be32(data + DATA_CQ_ERROR_NUMBER, (uint32_t)number);
	data[DATA_CQ_ERROR_SYNDROME] = (uint8_t)syndrome;
	return post_to_all(dev, EVENT_CQ_ERROR, data, req);
}

int run_qp_event(struct device *dev, struct request *req)
{
	uint64_t number, type = EVENT_QP_CATASTROPHIC;
	uint8_t data[DATA_SIZE] = { 0 };

	if (!parse_number(req->args[0], 0, MAX_NUMBER, &number) ||
	    !parse_optional(req->args[1], 0, MAX_TYPE, &type))
		return -EINVAL;
	put_be32(data + DATA_NUMBER, (uint32_t)number);
	return post_to_all(dev, (enum event_type)type, data, req);
}

/* The types of the asynchronous queue have meanings of their own. */
static bool is_free_type(uint64_t type)
{
	return type != EVENT_COMPLETION && type != EVENT_COMMAND && type != EVENT_PAGES;
}

int run_events(struct device *dev, struct request *req)
{
	struct event_job job = { .numbered = true };
	uint64_t type;
	int error;

	if (!parse_number(req->args[0], 0, MAX_TYPE, &type) || !is_free_type(type) ||
	    !parse_number(req->args[1], 0, UINT32_MAX, &job.left))
		return -EINVAL;
	job.type = (uint8_t)type;
	error = event_job_add_all(dev, job);
	return error == -ENETDOWN ? nobody_asked(req) : error;
}

static int port_in_numbers(struct device *dev, bool up, char **args, struct request *req)
{
	struct event_job job = port_job(up);
	int error;

	if (!parse_number(args[0], 0, UINT32_MAX, &job.left))
		return -EINVAL;
	if (args[1] && (strcmp(args[1], "every") || !args[2] || !control_time(args[2], &job.every)))
		return -EINVAL;
	error = event_job_add_all(dev, job);
	return error == -ENETDOWN ? nobody_asked(req) : error;
}

int run_port(struct device *dev, struct request *req)
{
	bool up = !strcmp(req->args[0], "up");

	if (!up && strcmp(req->args[0], "down"))
		return -EINVAL;
	if (req->args[1])
		return port_in_numbers(dev, up, req->args + 1, req);
	look_at_doorbells(dev);
	port_event(dev, up);
	return 0;
}

int run_overrun(struct device *dev, struct request *req)
{
	struct eq *eq = eq_for(dev, EVENT_COMMAND);
	uint64_t number = 0;

	if (!parse_optional(req->args[0], 0, MAX_EQS - 1, &number))
		return -EINVAL;
	if (number)
		eq = dev->eqs[number];
	if (eq) {
		look_at_doorbells(dev);
		eq_overrun(dev, eq);
		return 0;
	}
	snprintf(req->reply, req->size, "the device has no such event queue");
	return -ENETDOWN;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events in numbers: each job writes to one event queue, as fast as that has room or at a given
 * pace. So no event is lost, however slow the program is.
 */
#include <errno.h>
#include <string.h>
#include "bytes.h"
#include "device.h"

enum {
	DATA_NUMBER = 4, /* of the event, within its job; the formats in use have nothing there */
};

int event_job_add(struct device *dev, const struct event_job *job)
{
	if (dev->event_job_count == MAX_EVENT_JOBS)
		return -ENOSPC;
	dev->event_jobs[dev->event_job_count++] = *job;
	return 0;
}

/* The same job for every queue that asked for its type. */
int event_job_add_all(struct device *dev, struct event_job job)
{
	bool any = false;

	for (unsigned i = 1; i < MAX_EQS; i++) {
		int error;

		if (!dev->eqs[i] || !(dev->eqs[i]->events >> job.type & 1))
			continue;
		job.queue = (uint8_t)i;
		error = event_job_add(dev, &job);
		if (error)
			return error;
		any = true;
	}
	return any ? 0 : -ENETDOWN;
}

void event_jobs_forget(struct device *dev, const struct eq *eq)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < dev->event_job_count; i++)
		if (dev->event_jobs[i].queue != eq->number)
			dev->event_jobs[kept++] = dev->event_jobs[i];
	dev->event_job_count = kept;
}

static void write_one(struct device *dev, struct eq *eq, struct event_job *job)
{
	if (job->numbered)
		put_be32(job->data + DATA_NUMBER, (uint32_t)job->written);
	eq_post(dev, eq, (enum event_type)job->type, job->sub_type, job->data);
	if (job->alternates)
		port_flip(dev, job);
	job->written++;
	job->left--;
}

static bool run_job(struct device *dev, struct eq *eq, struct event_job *job, uint64_t now,
		    uint64_t *next)
{
	bool busy = false;

	while (job->left && now >= job->due && !eq->broken && eq_backlog(eq) < eq->entries) {
		write_one(dev, eq, job);
		busy = true;
		if (job->every)
			job->due = now + job->every;
	}
	if (job->left && job->due > now && job->due < *next)
		*next = job->due;
	return busy;
}

/* A queue that was overrun takes nothing more: its jobs are over. */
static bool is_over(const struct device *dev, const struct event_job *job)
{
	return !job->left || dev->eqs[job->queue]->broken;
}

bool event_jobs_step(struct device *dev, uint64_t now, uint64_t *next)
{
	bool busy = false;
	unsigned kept = 0;

	if (dev->faults.nic != NIC_FULL)
		return false;
	for (unsigned i = 0; i < dev->event_job_count; i++) {
		struct event_job *job = &dev->event_jobs[i];

		busy |= run_job(dev, dev->eqs[job->queue], job, now, next);
		if (!is_over(dev, job))
			dev->event_jobs[kept++] = *job;
	}
	dev->event_job_count = kept;
	return busy;
}

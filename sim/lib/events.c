/* SPDX-License-Identifier: BSD-2-Clause */
/* Page requests in their various rhythms. */
#include <errno.h>
#include <string.h>
#include "bytes.h"
#include "device.h"

enum {
	DATA_SIZE = 28,
	DATA_PAGES = 4,
	COMMAND_ROOM = 32, /* what a page request must leave free */
};

int page_job_add(struct device *dev, const struct page_job *job)
{
	if (dev->job_count == MAX_PAGE_JOBS)
		return -ENOSPC;
	dev->jobs[dev->job_count++] = *job;
	dev->stats.requests_pending += job->left;
	return 0;
}

void page_jobs_stop(struct device *dev)
{
	dev->job_count = 0;
	dev->stats.requests_pending = 0;
}

static void write_request(struct device *dev, struct eq *eq, int32_t pages)
{
	uint8_t data[DATA_SIZE] = { 0 };

	put_be32(data + DATA_PAGES, (uint32_t)pages);
	eq_post(dev, eq, EVENT_PAGES, 0, data);
	dev->unanswered++;
	dev->stats.requests_pending--;
	if (pages > 0)
		dev->stats.pages_requested += (uint64_t)pages;
	else
		dev->stats.pages_asked_back += (uint64_t) - (int64_t)pages;
}

static bool may_write(const struct device *dev, const struct eq *eq, const struct page_job *job,
		      uint64_t now)
{
	if (eq->broken || eq_backlog(eq) + COMMAND_ROOM >= eq->entries)
		return false;
	return now >= job->due && !(job->spaced && dev->unanswered);
}

static bool run_job(struct device *dev, struct eq *eq, struct page_job *job, uint64_t now,
		    uint64_t *next)
{
	bool busy = false;

	while (job->left && may_write(dev, eq, job, now)) {
		write_request(dev, eq, job->pages);
		job->left--;
		busy = true;
		if (job->every)
			job->due = now + job->every;
	}
	if (job->left && job->due > now && job->due < *next)
		*next = job->due;
	return busy;
}

/*
 * libmlx5 hands its answer over before it acknowledges the entry. When every entry is acknowledged
 * and no command waits, an answer that is still due will never come.
 */
static void give_up_lost_answers(struct device *dev, const struct eq *eq)
{
	if (!dev->unanswered || eq_backlog(eq) || commands_waiting(dev))
		return;
	dev->dropped += dev->unanswered;
	dev->unanswered = 0;
}

bool page_jobs_step(struct device *dev, uint64_t now, uint64_t *next)
{
	struct eq *eq = eq_for(dev, EVENT_PAGES);
	bool busy = false;
	unsigned kept = 0;

	if (!eq || dev->faults.nic != NIC_FULL)
		return false;
	give_up_lost_answers(dev, eq);
	for (unsigned i = 0; i < dev->job_count; i++) {
		busy |= run_job(dev, eq, &dev->jobs[i], now, next);
		if (dev->jobs[i].left)
			dev->jobs[kept++] = dev->jobs[i];
	}
	dev->job_count = kept;
	return busy;
}

void page_answer(struct device *dev)
{
	if (dev->unanswered)
		dev->unanswered--;
}

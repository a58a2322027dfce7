/* SPDX-License-Identifier: BSD-2-Clause */
/* The set of times at which libmlx5 can have checked health last. Pure arithmetic, no clock. */
#include <string.h>

#include "throttle.h"

/*
 * POLL_HEALTH_INTERVAL of libmlx5 (providers/mlx5/mlx5_vfio.h), compared in unsigned 64 bits
 * there.
 */
#define CHECK_PERIOD 1000

static void init(struct throttle *throttle, struct throttle_span span)
{
	throttle->spans[0] = span;
	throttle->count = 1;
	throttle->margin = THROTTLE_MARGIN_MS;
}

void throttle_init_unknown(struct throttle *throttle)
{
	init(throttle, (struct throttle_span){ 0, UINT64_MAX });
}

void throttle_init_fresh(struct throttle *throttle)
{
	init(throttle, (struct throttle_span){ 0, 0 });
}

/*
 * A value checks at time t when t - value >= CHECK_PERIOD without sign: also when it is ahead of
 * t.
 */
static bool span_may_check(struct throttle_span span, uint64_t first, uint64_t last)
{
	return span.to > first || (last >= CHECK_PERIOD && span.from <= last - CHECK_PERIOD);
}

static bool any_may_check(const struct throttle *throttle, uint64_t first, uint64_t last)
{
	unsigned i;

	for (i = 0; i < throttle->count; i++)
		if (span_may_check(throttle->spans[i], first, last))
			return true;
	return false;
}

bool throttle_may_check(const struct throttle *throttle, uint64_t now)
{
	return any_may_check(throttle, now, now + throttle->margin);
}

bool throttle_is_far(const struct throttle *throttle, uint64_t now, uint64_t slack)
{
	return throttle->spans[throttle->count - 1].to <= now &&
	       throttle->spans[0].from + CHECK_PERIOD > now + slack;
}

static void remove_span(struct throttle *throttle, unsigned at)
{
	throttle->count--;
	memmove(&throttle->spans[at], &throttle->spans[at + 1],
		(throttle->count - at) * sizeof(throttle->spans[0]));
}

/* Only values in (before - CHECK_PERIOD, after] can have let the call pass without a check. */
static void keep_unchecked(struct throttle *throttle, uint64_t before, uint64_t after)
{
	uint64_t from = before >= CHECK_PERIOD ? before - CHECK_PERIOD + 1 : 0;
	unsigned i = 0;

	while (i < throttle->count) {
		struct throttle_span *span = &throttle->spans[i];

		if (span->from < from)
			span->from = from;
		if (span->to > after)
			span->to = after;
		if (span->from > span->to)
			remove_span(throttle, i);
		else
			i++;
	}
}

static bool touch(struct throttle_span a, struct throttle_span b)
{
	return b.from <= a.to || b.from - a.to <= 1;
}

static void join_with_next(struct throttle *throttle, unsigned at)
{
	struct throttle_span *span = &throttle->spans[at];

	if (span[1].to > span->to)
		span->to = span[1].to;
	remove_span(throttle, at + 1);
}

static void join_closest(struct throttle *throttle)
{
	const struct throttle_span *spans = throttle->spans;
	unsigned best = 0;
	unsigned i;

	for (i = 1; i + 1 < throttle->count; i++)
		if (spans[i + 1].from - spans[i].to < spans[best + 1].from - spans[best].to)
			best = i;
	join_with_next(throttle, best);
}

static void add_span(struct throttle *throttle, struct throttle_span span)
{
	unsigned at = 0;

	if (throttle->count == THROTTLE_SPANS)
		join_closest(throttle);
	while (at < throttle->count && throttle->spans[at].from < span.from)
		at++;
	memmove(&throttle->spans[at + 1], &throttle->spans[at],
		(throttle->count - at) * sizeof(throttle->spans[0]));
	throttle->spans[at] = span;
	throttle->count++;
	while (at + 1 < throttle->count && touch(throttle->spans[at], throttle->spans[at + 1]))
		join_with_next(throttle, at);
	if (at && touch(throttle->spans[at - 1], throttle->spans[at]))
		join_with_next(throttle, at - 1);
}

void throttle_held_up(struct throttle *throttle, uint64_t took)
{
	uint64_t margin = took > THROTTLE_MARGIN_MAX_MS / 2 ? THROTTLE_MARGIN_MAX_MS : 2 * took;

	if (margin > throttle->margin)
		throttle->margin = margin;
}

void throttle_relax(struct throttle *throttle)
{
	uint64_t margin = throttle->margin - throttle->margin / 8;

	throttle->margin = margin > THROTTLE_MARGIN_MS ? margin : THROTTLE_MARGIN_MS;
}

bool throttle_called(struct throttle *throttle, uint64_t before, uint64_t after)
{
	bool checked;

	/* The clock was set back during the call: libmlx5 may have read it on either side. */
	if (after < before) {
		throttle->spans[0] = (struct throttle_span){ 0, UINT64_MAX };
		throttle->count = 1;
		return true;
	}
	throttle_held_up(throttle, after - before);
	checked = any_may_check(throttle, before, after);
	keep_unchecked(throttle, before, after);
	if (checked)
		add_span(throttle, (struct throttle_span){ before, after });
	return checked;
}

uint64_t throttle_gain(const struct throttle *throttle, uint64_t now, uint64_t horizon)
{
	uint64_t gain = 0;
	unsigned i;

	for (i = 0; i < throttle->count; i++) {
		uint64_t last = throttle->spans[i].to < now ? throttle->spans[i].to : now;

		if (throttle->spans[i].from + CHECK_PERIOD > now + horizon)
			break;
		if (last + CHECK_PERIOD > now)
			gain = last + CHECK_PERIOD - now;
	}
	return gain;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for what libevent may refuse. */
#include <errno.h>
#include <event2/event.h>

#include "inject.h"

int event_assign(struct event *event, struct event_base *base, evutil_socket_t fd, short events,
		 event_callback_fn callback, void *arg)
{
	int (*next)(struct event *, struct event_base *, evutil_socket_t, short, event_callback_fn,
		    void *);
	struct injected call = inject_enter("event_assign", &next, __builtin_return_address(0));
	int ret = call.fails ? -1 : next(event, base, fd, events, callback, arg);

	inject_leave(call);
	return ret;
}

int event_add(struct event *event, const struct timeval *timeout)
{
	int (*next)(struct event *, const struct timeval *);
	struct injected call = inject_enter("event_add", &next, __builtin_return_address(0));
	int ret = call.fails ? -1 : next(event, timeout);

	inject_leave(call);
	return ret;
}

/* It fails after it has taken the event from its own lists. */
int event_del(struct event *event)
{
	int (*next)(struct event *);
	struct injected call = inject_enter("event_del", &next, __builtin_return_address(0));
	int ret = next(event);

	if (call.fails) {
		errno = ENOENT;
		ret = -1;
	}
	inject_leave(call);
	return ret;
}

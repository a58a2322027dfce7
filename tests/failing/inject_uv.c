/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for what libuv may refuse. uv_timer_init(), uv_timer_stop(), and
 * uv_poll_stop() of a handle that is not closing never do.
 */
#include <uv.h>

#include "inject.h"

int uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
	int (*next)(uv_loop_t *, uv_poll_t *, int);
	struct injected call = inject_enter("uv_poll_init", &next, __builtin_return_address(0));
	int err = call.fails ? UV_ENOMEM : next(loop, poll, fd);

	inject_leave(call);
	return err;
}

int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb callback)
{
	int (*next)(uv_poll_t *, int, uv_poll_cb);
	struct injected call = inject_enter("uv_poll_start", &next, __builtin_return_address(0));
	int err = call.fails ? UV_ENOMEM : next(poll, events, callback);

	inject_leave(call);
	return err;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t timeout, uint64_t repeat)
{
	int (*next)(uv_timer_t *, uv_timer_cb, uint64_t, uint64_t);
	struct injected call = inject_enter("uv_timer_start", &next, __builtin_return_address(0));
	int err = call.fails ? UV_ENOMEM : next(timer, callback, timeout, repeat);

	inject_leave(call);
	return err;
}

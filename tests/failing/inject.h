/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes one call of many fail: the first, the second, and so on that the library, or what it calls,
 * makes to the system while the injection is armed.
 */
#ifndef FAILING_INJECT_H
#define FAILING_INJECT_H

#include <stdbool.h>

enum inject_whose {
	INJECT_OURS,     /* the library's own calls alone */
	INJECT_COMMANDS, /* and those of libmlx5 and the loop on its behalf, without read() */
	INJECT_ALL,      /* read() as well, with which libmlx5 forgets a command under way */
};

/* From now on, on this thread, the call with this number (from 1) fails; 0: none does. */
void inject_arm(unsigned number, enum inject_whose whose);

/* No call fails any more. */
void inject_disarm(void);

/* The call that was made to fail since it was armed; NULL if there were not so many. */
const char *inject_failed(void);

/* A call under way; the functions that stand in for the real ones begin and end with it. */
struct injected {
	bool fails;
	bool outer; /* what is called inside counts as well */
};

/* next gets the real function. caller is who called: its return address. */
struct injected inject_enter(const char *name, void *next, const void *caller);
void inject_leave(struct injected call);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* A helper thread that closes one ctx, which may take minutes, and says when it is done. */
#ifndef CORE_CLOSER_H
#define CORE_CLOSER_H

#include <stdbool.h>

struct ibv_context;
struct verbs_eq;
struct closer;

/*
 * Makes the thread, which waits for closer_go() before it touches ctx. dead: closing will spin, so
 * it runs only when a core has nothing else to do. 0 or a negative errno.
 */
int closer_new(struct ibv_context *ctx, bool dead, struct closer **closer);

/* An fd that becomes readable when ctx is closed. */
int closer_fd(const struct closer *closer);

/* queues, linked by their next, are destroyed before the ctx is closed. */
void closer_go(struct closer *closer, struct verbs_eq *queues);

/* Is ctx closed? Then *error is 0 or a negative errno. */
bool closer_done(struct closer *closer, int *error);

/* Forgets the thread. Before closer_go(): it ends without closing ctx; after: it finishes alone. */
void closer_drop(struct closer *closer);

#endif

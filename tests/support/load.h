/* SPDX-License-Identifier: BSD-2-Clause */
/* What keeps a simulated device busy during a test. */
#ifndef TESTS_LOAD_H
#define TESTS_LOAD_H

struct ibv_context;

/*
 * Starts a load by its name on simulated device dev, opened as ctx: "idle" is none, "storm" a page
 * request every millisecond, "commands" a thread that allocates and frees a protection domain over
 * and over. A load ends with its process: a command on a dead device never returns.
 */
void load_start(const char *name, unsigned dev, struct ibv_context *ctx);

#endif

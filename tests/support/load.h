/* SPDX-License-Identifier: BSD-2-Clause */
/* What keeps a simulated device busy during a test. */
#ifndef TESTS_LOAD_H
#define TESTS_LOAD_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_context;

/*
 * Starts a load by its name on simulated device dev, opened as ctx: "idle" is none, "storm" a page
 * request every millisecond, "commands" a thread that allocates and frees a protection domain over
 * and over. A load ends with its process: a command on a dead device never returns.
 */
void load_start(const char *name, unsigned dev, struct ibv_context *ctx);

/* Threads that run commands on one device after another, over and over. */
struct load_commands;

/* What they run: true if it went well. */
typedef bool load_command_fn(struct ibv_context *ctx);

/* Allocates and frees a protection domain: two commands. */
load_command_fn load_pd;

/* Asks firmware something: one command, of which nothing is left also when it fails halfway. */
load_command_fn load_query;

/*
 * Starts them. The count devices are shared out among the threads; each thread sleeps for pause_us
 * after a command, in which the events are the loop's.
 */
struct load_commands *load_commands_start(load_command_fn *command, unsigned threads,
					  unsigned pause_us, struct ibv_context *const ctxs[],
					  unsigned count);

/*
 * Ends them once the commands under way have ended, for which no loop need turn. Returns how often
 * the command was run, and in *failed how often it failed.
 */
uint64_t load_commands_stop(struct load_commands *commands, uint64_t *failed);

#endif

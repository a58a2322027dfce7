/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket: a line in, an answer line out. Never blocks the engine. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include <stdint.h>

struct pollfd;

enum {
	SERVER_CLIENTS = 8,
	SERVER_FDS = 1 + SERVER_CLIENTS,
};

void server_open(void);
void server_forget(void);

/* Fills fds, always in the same order. Returns how many. Called without the lock, by the engine. */
int server_pollfds(struct pollfd *fds);
void server_serve(const struct pollfd *fds, int count);

/* Answers who waits for a device to settle or to be closed; lowers *next to when to look again. */
void server_step(uint64_t now, uint64_t *next);

#endif

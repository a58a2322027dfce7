/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: one thread per process that plays every device, runs the fault script and serves the
 * control socket. One lock covers all state.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>

/* Starts the engine if it does not run yet; fault script lines at 0ms hold when this returns. */
bool engine_start(void);
void engine_lock(void);
void engine_unlock(void);

/* Makes the engine look now. */
void engine_kick(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The fault script: lines of the control language, each with a time before it. */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include <stdint.h>

void script_start(uint64_t now);
void script_run(uint64_t now, uint64_t *next);
void script_forget(void);

#endif

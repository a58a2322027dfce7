/* SPDX-License-Identifier: BSD-2-Clause */
/* The scenarios, and how a loop's test program runs them. */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include "driver.h"

/*
 * Runs all scenarios over the first driver and the brief ones over the others, which are variants
 * of it. What the first could do goes to the table (conformance.sh). Returns the program's exit
 * status.
 */
int suite_run(const struct loop_driver *const drivers[], unsigned count);

#endif

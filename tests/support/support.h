/* SPDX-License-Identifier: BSD-2-Clause */
/* What the test programs share: opening a simulated device, steering it, counting what is left. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <check.h>
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stdint.h>

#include "mlx5vfio_sim.h"

/* Runs a suite; the exit status of a test program. */
int support_run(Suite *suite);

/*
 * Ends the program with a message unless ok: for what must hold before a test can say anything. The
 * helper programs use it too, in which Check's assertions do not work.
 */
void support_require(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same without a condition. */
_Noreturn void support_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* full rounds in a plain run, fewer under a sanitizer or valgrind; at least 1. */
int support_rounds(int full);

/* CLOCK_MONOTONIC in milliseconds. */
int64_t support_now_ms(void);

/* Opens simulated device number dev through libmlx5; ends the program if that fails. */
struct ibv_context *support_open(unsigned dev);

/* The PCI name of simulated device number dev, in a static buffer of the calling thread. */
const char *support_pci_name(unsigned dev);

/* One line of the simulator's control language; ends the program if it is refused. */
void support_sim(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The counters of a simulated device. */
struct mlx5vfio_sim_stats support_stats(unsigned dev);

/* How many file descriptors the process has open. */
int support_open_fds(void);

/* As many as the system lets us have: six for each device, and the simulator's own. */
void support_allow_fds(void);

/* A helper program of the test build that runs as a child. */
struct support_child {
	int pid;
	int out; /* its standard output */
};

/* Starts one: its name, then arguments up to NULL. Its standard error is discarded. */
struct support_child support_start(const char *const argv[]);

/* Waits for its end and returns its wait status; what it wrote goes to output as a string. */
int support_finish(struct support_child child, char *output, size_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5vfio-sim: a simulated ConnectX behind the system calls that libmlx5 makes.
 *
 * The simulator lives in a preload library that the command mlx5vfio-sim puts into a program. This
 * header lets a test program steer it from C. Nothing is linked: every symbol is weak and is found
 * only while the program runs under mlx5vfio-sim; ask mlx5vfio_sim_present() first.
 *
 * Every function here may be called from any thread, at any time, also from a callback of the code
 * under test. None of them calls libmlx5 or blocks on it; two commands wait, settle and unbind with a
 * time.
 */
#ifndef MLX5VFIO_SIM_H
#define MLX5VFIO_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a simulated device has counted since it was last opened (kept after its close). */
struct mlx5vfio_sim_stats {
	uint64_t opens;            /* times the device was opened, since the program started */
	uint64_t commands;         /* commands executed, also the failed ones */
	uint64_t eqes;             /* event queue entries written, all queues */
	uint64_t consumed;         /* entries the driver acknowledged with its consumer index */
	uint64_t interrupts;       /* interrupts raised, all vectors */
	uint64_t pages_requested;  /* pages asked for through page-request events */
	uint64_t pages_given;      /* pages received, boot and init pages not included */
	uint64_t pages_startup;    /* boot and init pages received */
	uint64_t pages_asked_back; /* pages asked back through page-request events */
	uint64_t pages_returned;   /* pages handed back */
	uint64_t requests_pending; /* page-request events not yet written to the queue */
	uint64_t dma_maps;         /* DMA mappings in force now (at close: left over) */
	uint64_t violations;       /* broken rules of the hardware, each also told on stderr */
};

/*
 * Executes one line of the control language (sim/README.md), for example "fatal 0" or
 * "page-request 0 64". The answer, without newline, goes to reply (may be NULL when size is 0).
 * Returns 0, -EINVAL for a line that does not parse, -ENODEV for a device that does not exist,
 * -ENETDOWN when the device is not open and the command needs it to be, -ETIMEDOUT when what it
 * waited for did not come in time.
 */
int mlx5vfio_sim_control(const char *line, char *reply, size_t size) __attribute__((weak));

/* Copies the counters of device number dev. Returns 0 or -ENODEV. */
int mlx5vfio_sim_get_stats(unsigned dev, struct mlx5vfio_sim_stats *stats) __attribute__((weak));

/*
 * Sleeps until device dev has nothing to do: no event waits to be written, no command runs (a hung
 * one does not count), every entry is consumed, no answer to a page request is due. Returns 0,
 * -ETIMEDOUT after timeout_ms, or -ENODEV. A loop that runs on the calling thread does not turn
 * meanwhile: call it from another thread, or with 0 to ask.
 */
int mlx5vfio_sim_settle(unsigned dev, int timeout_ms) __attribute__((weak));

/* True while the program runs under mlx5vfio-sim. */
static inline bool mlx5vfio_sim_present(void)
{
	return mlx5vfio_sim_control != NULL;
}

#ifdef __cplusplus
}
#endif

#endif

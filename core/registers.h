/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's health registers: the initialization segment at the start of BAR0. */
#ifndef CORE_REGISTERS_H
#define CORE_REGISTERS_H

#include <mlx5vfio/core.h>

/* The start of BAR0 in this process. Reads only. */
typedef const volatile uint32_t *bar_t;

/* What one look at the registers takes: five reads, about a microsecond each on hardware. */
struct registers_sample {
	uint32_t fw_ver;
	uint32_t
		queue_page; /* where libmlx5 put the command queue; changed by nobody else but a reset */
	uint8_t nic_state;
	uint8_t synd;
	uint16_t ext_synd;
	uint32_t counter;
	bool recovery_request;
};

/*
 * Finds BAR0 from the UAR page that libmlx5 gave out and its number. Reads nothing before the
 * process's own map has confirmed that the place is what it must be. NULL if anything does not
 * fit.
 */
bar_t registers_find(const void *uar_page, uint32_t uar_number);

void registers_sample(bar_t bar, struct registers_sample *sample);

/* Does the device answer as an mlx5 device? It does not while it is being reset. */
bool registers_answer(bar_t bar);

/* The health counter alone. */
uint32_t registers_counter(bar_t bar);

/* Fills in everything but fault, warning and unmoved_ms. */
void registers_report(bar_t bar, struct mlx5vfio_health *health);

#endif

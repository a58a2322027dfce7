/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulated device on a stage, with handlers that count and can be told to do more. */
#ifndef CONFORMANCE_SUBJECT_H
#define CONFORMANCE_SUBJECT_H

#include <mlx5vfio/core.h>

#include "stage.h"
#include "support/support.h"

struct subject {
	struct stage *stage;
	unsigned index; /* of the simulated device */
	struct ibv_context *ctx;
	int fd;
	struct mlx5vfio *dev; /* NULL: not attached */

	unsigned healths, faults, errors, closed, detached;
	struct mlx5vfio_health health; /* the last one told */
	int error;                     /* likewise */

	void (*act)(struct subject *subject); /* what .health and .error do besides counting */
	struct subject *other;                /* for act */
};

/* Opens simulated device number index for this stage. */
void subject_open(struct subject *subject, struct stage *stage, unsigned index);

/* Puts it on the loop, with the counting handlers and this period. */
void subject_attach(struct subject *subject, int interval_ms);

/* Has the library close it; .closed and .detached follow. */
void subject_close_by_library(struct subject *subject);

/* Sets the counting handlers. */
void subject_listen(struct subject *subject);

void subject_detach(struct subject *subject);

/* Instead of a detach when the loop is gone. */
void subject_forget(struct subject *subject);

/*
 * Ends the simulated faults, with which closing would take minutes, and closes the ctx: nothing may
 * be left of it, and no rule of the hardware broken.
 */
void subject_close(struct subject *subject);

/* Turns until .detached has come, and once more: it must not come twice. */
void subject_expect_detached(struct subject *subject);

/* Open and attach; detach, close and .detached. */
void subject_begin(struct subject *subject, struct stage *stage, unsigned index, int interval_ms);
void subject_end(struct subject *subject);

/* Ends what a scenario that failed left behind, so that the next one does not fail of it too. */
void subject_clean_up(void);

struct mlx5vfio_stats subject_stats(const struct subject *subject);

/* For stage_until(), with a subject as arg. */
bool subject_has_error(void *arg);
bool subject_has_fault(void *arg);

/* Turns until the device was given so many pages, or has done so many ticks. */
void subject_until_given(struct subject *subject, uint64_t pages);
void subject_until_ticks(struct subject *subject, uint64_t ticks);

/* Firmware asks for pages; returns when the interrupt is there, without a turn. */
void subject_post_event(struct subject *subject, unsigned pages);

#endif

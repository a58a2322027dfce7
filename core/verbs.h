/* SPDX-License-Identifier: BSD-2-Clause */
/* All that mlx5vfio asks of libmlx5. Only verbs.c calls it. */
#ifndef CORE_VERBS_H
#define CORE_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibv_context;

/* A page of the device's registers in this process, and its number in BAR0. */
struct verbs_uar {
	const void *page;
	uint32_t number;
};

/* 0 and *uar if ctx belongs to libmlx5's VFIO driver, -EOPNOTSUPP if not, -EINVAL or -ENOMEM. */
int verbs_check(struct ibv_context *ctx, struct verbs_uar *uar);

/* The fd that interrupts arrive on. ctx must have passed verbs_check(). */
int verbs_events_fd(struct ibv_context *ctx);

/* Handles what is pending; 0 or a negative errno, whatever convention libmlx5 failed in. */
int verbs_process_events(struct ibv_context *ctx);

/* An event queue on an interrupt vector of its own. */
struct verbs_eq {
	int fd; /* becomes readable on an interrupt */
	uint8_t number;
	uint8_t *entries;            /* not initialised */
	size_t size;                 /* of the entries */
	volatile uint32_t *uar_page; /* where its doorbells are */
	struct mlx5dv_devx_msi_vector *vector;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_eq *eq;
	struct verbs_eq *next; /* for whoever owns it */
};

/* Executes a command. events: a bit for each event type. NULL with errno. */
struct verbs_eq *verbs_eq_create(struct ibv_context *ctx, unsigned log_size, uint64_t events);

/* Executes a command. Does the device say that it could not write to the queue? */
bool verbs_eq_failed(struct ibv_context *ctx, const struct verbs_eq *eq);

/* Executes a command and frees eq. The fd is closed. */
void verbs_eq_destroy(struct verbs_eq *eq);

/* Opens a device; 0 or a negative errno, -ENODEV when libmlx5 gives no reason. */
int verbs_open(const char *pci_name, uint32_t flags, struct ibv_context **ctx);

/* Closes a device; 0 or a negative errno. */
int verbs_close(struct ibv_context *ctx);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* All that mlx5vfio asks of libmlx5, behind one calling convention. */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/mlx5dv.h>

#include "verbs.h"

/*
 * get_events_fd() on a ctx of another driver reads past its end. Two public calls tell the VFIO
 * driver apart: mlx5dv_is_supported() is true only for the kernel driver's devices, and the devx
 * calls know no third kind of ctx. The UAR is a small host allocation under VFIO: no command is
 * sent.
 */
int verbs_check(struct ibv_context *ctx, struct verbs_uar *out)
{
	struct mlx5dv_devx_uar *uar;

	if (!ctx->device)
		return -EINVAL;
	if (mlx5dv_is_supported(ctx->device))
		return -EOPNOTSUPP;
	uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	if (!uar)
		return errno == ENOMEM ? -ENOMEM : -EOPNOTSUPP;
	*out = (struct verbs_uar){ .page = uar->base_addr, .number = uar->page_id };
	mlx5dv_devx_free_uar(uar);
	return 0;
}

int verbs_events_fd(struct ibv_context *ctx)
{
	return mlx5dv_vfio_get_events_fd(ctx);
}

/* libmlx5 fails with a positive errno, or with -1 and errno, depending on how deep it was. */
int verbs_process_events(struct ibv_context *ctx)
{
	int ret = mlx5dv_vfio_process_events(ctx);

	if (ret > 0)
		return -ret;
	if (ret == -1)
		return errno ? -errno : -EIO;
	return ret;
}

/* Byte offsets in commands and their answers, from the programmer's reference manual. */
enum {
	CREATE_EQ = 0x301,
	CREATE_EQ_IN_SIZE = 0x110,
	CREATE_EQ_OUT_SIZE = 0x10,
	IN_EQ_SIZE_AND_UAR = 0x1c, /* bits 28:24 log of the entries, 23:0 the UAR page */
	IN_EQ_VECTOR = 0x27,
	IN_EVENTS = 0x58,
	ENTRY_SIZE = 64,
	OUT_EQ_NUMBER = 0x0b,
	QUERY_EQ = 0x303,
	QUERY_EQ_IN_SIZE = 0x10,
	QUERY_EQ_OUT_SIZE = 0x110,
	IN_EQ_NUMBER = 0x0b,
	OUT_EQ_STATUS = 0x10, /* bits 7:4 */
	EQ_WRITE_FAILURE = 0xa,
};

static bool has_handler(int signal)
{
	struct sigaction action;

	return !sigaction(signal, NULL, &action) && action.sa_handler != SIG_DFL &&
	       action.sa_handler != SIG_IGN;
}

/*
 * A signal handler that runs meanwhile makes libmlx5 give a command up that firmware still executes. What
 * has no handler ends the program as ever, and what the program does wrong in here is not put off.
 */
static void block_signals(sigset_t *before)
{
	static const int mistakes[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	sigset_t handled;
	size_t i;
	int signal;

	sigemptyset(&handled);
	for (signal = 1; signal <= SIGRTMAX; signal++)
		if (has_handler(signal))
			sigaddset(&handled, signal);
	for (i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		sigdelset(&handled, mistakes[i]);
	pthread_sigmask(SIG_BLOCK, &handled, before);
}

static void restore_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

static struct mlx5dv_devx_eq *create_eq(struct ibv_context *ctx, unsigned log_size, uint64_t events,
					struct verbs_eq *eq)
{
	uint8_t in[CREATE_EQ_IN_SIZE] = { CREATE_EQ >> 8, CREATE_EQ & 0xff };
	uint8_t out[CREATE_EQ_OUT_SIZE] = { 0 };
	uint32_t size_and_uar = htobe32(log_size << 24 | eq->uar->page_id);
	struct mlx5dv_devx_eq *created;

	events = htobe64(events);
	memcpy(in + IN_EQ_SIZE_AND_UAR, &size_and_uar, sizeof(size_and_uar));
	memcpy(in + IN_EVENTS, &events, sizeof(events));
	in[IN_EQ_VECTOR] = (uint8_t)eq->vector->vector;
	created = mlx5dv_devx_create_eq(ctx, in, sizeof(in), out, sizeof(out));
	eq->number = out[OUT_EQ_NUMBER];
	return created;
}

static bool acquire(struct ibv_context *ctx, unsigned log_size, uint64_t events,
		    struct verbs_eq *eq)
{
	eq->vector = mlx5dv_devx_alloc_msi_vector(ctx);
	if (!eq->vector)
		return false;
	eq->uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	if (!eq->uar)
		return false;
	eq->eq = create_eq(ctx, log_size, events, eq);
	return eq->eq != NULL;
}

struct verbs_eq *verbs_eq_create(struct ibv_context *ctx, unsigned log_size, uint64_t events)
{
	struct verbs_eq *eq = calloc(1, sizeof(*eq));
	sigset_t signals;
	bool acquired;
	int err;

	if (!eq)
		return NULL;
	block_signals(&signals);
	errno = 0;
	acquired = acquire(ctx, log_size, events, eq);
	err = errno ? errno : EIO;
	restore_signals(&signals);
	if (!acquired) {
		verbs_eq_destroy(eq);
		errno = err;
		return NULL;
	}
	eq->fd = eq->vector->fd;
	eq->entries = eq->eq->vaddr;
	eq->size = (size_t)ENTRY_SIZE << log_size;
	eq->uar_page = eq->uar->base_addr;
	return eq;
}

bool verbs_eq_failed(struct ibv_context *ctx, const struct verbs_eq *eq)
{
	uint8_t in[QUERY_EQ_IN_SIZE] = { QUERY_EQ >> 8, QUERY_EQ & 0xff };
	uint8_t out[QUERY_EQ_OUT_SIZE] = { 0 };
	sigset_t signals;
	int err;

	in[IN_EQ_NUMBER] = eq->number;
	block_signals(&signals);
	err = mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out));
	restore_signals(&signals);
	return !err && out[OUT_EQ_STATUS] >> 4 == EQ_WRITE_FAILURE;
}

/*
 * libmlx5 never frees the memory of a queue. Should it learn to, the memory may come back as the next
 * queue's, uninitialised: what is left in it must not look like events.
 */
void verbs_eq_destroy(struct verbs_eq *eq)
{
	sigset_t signals;

	block_signals(&signals);
	if (eq->entries)
		memset(eq->entries, 0xff, eq->size);
	if (eq->eq)
		mlx5dv_devx_destroy_eq(eq->eq);
	if (eq->uar)
		mlx5dv_devx_free_uar(eq->uar);
	if (eq->vector)
		mlx5dv_devx_free_msi_vector(eq->vector);
	restore_signals(&signals);
	free(eq);
}

int verbs_open(const char *pci_name, uint32_t flags, struct ibv_context **ctx)
{
	struct mlx5dv_vfio_context_attr attr = { .pci_name = pci_name, .flags = flags };
	struct ibv_device **list;
	int err = 0;

	errno = 0;
	list = mlx5dv_get_vfio_device_list(&attr);
	if (!list)
		return errno ? -errno : -ENODEV;
	errno = 0;
	*ctx = ibv_open_device(list[0]);
	if (!*ctx)
		err = errno ? -errno : -ENODEV;
	ibv_free_device_list(list);
	return err;
}

int verbs_close(struct ibv_context *ctx)
{
	errno = 0;
	if (!ibv_close_device(ctx))
		return 0;
	return errno ? -errno : -EIO;
}

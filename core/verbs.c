/* SPDX-License-Identifier: BSD-2-Clause */
/* All that mlx5vfio asks of libmlx5, behind one calling convention. */
#include <errno.h>
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
	int ret;

	errno = 0;
	ret = mlx5dv_vfio_process_events(ctx);
	if (ret > 0)
		return -ret;
	if (ret == -1)
		return errno ? -errno : -EIO;
	return ret;
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_guard_maps HOW: breaks the mapping of BAR0 under an open device, then attaches, asks
 * and detaches. Prints whether the device is guarded, and what reading its health returned. Ends
 * without a close: libmlx5 itself may not survive what was done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mlx5vfio/core.h>

#include "support/support.h"

#define PAGE 4096u

static char *bar;
static size_t bar_size; /* up to the UAR page and with it */

static void find_bar(struct ibv_context *ctx)
{
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);

	if (!uar)
		exit(EXIT_FAILURE);
	bar_size = (size_t)(uar->page_id + 1) * PAGE;
	bar = (char *)uar->base_addr - (size_t)uar->page_id * PAGE;
	mlx5dv_devx_free_uar(uar);
}

static void require_map(const void *map)
{
	support_require(map != MAP_FAILED, "cannot map");
}

static void cover(void *at, size_t size)
{
	require_map(mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			 -1, 0));
}

static void move_away(size_t size)
{
	void *elsewhere = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require_map(elsewhere);
	require_map(mremap(bar, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere));
}

static void make_private(void)
{
	char copy[2 * PAGE];

	memcpy(copy, bar, sizeof(copy));
	cover(bar, bar_size);
	memcpy(bar, copy, sizeof(copy));
}

/* The registers lie in the first two pages, but all up to the UAR page must be one mapping. */
static void destroy(const char *how)
{
	if (!strcmp(how, "moved"))
		move_away(2 * PAGE);
	else if (!strcmp(how, "unmapped"))
		support_require(!munmap(bar, PAGE), "munmap");
	else if (!strcmp(how, "all-unmapped"))
		support_require(!munmap(bar, bar_size), "munmap");
	else if (!strcmp(how, "second-page"))
		cover(bar + PAGE, PAGE);
	else if (!strcmp(how, "before-uar"))
		cover(bar + bar_size - 2 * PAGE, PAGE);
	else if (!strcmp(how, "unreadable"))
		support_require(!mprotect(bar, PAGE, PROT_NONE), "mprotect");
	else if (!strcmp(how, "all-unreadable"))
		support_require(!mprotect(bar, bar_size, PROT_NONE), "mprotect");
	else if (!strcmp(how, "private"))
		make_private();
	else
		support_require(!strcmp(how, "intact"), "how?");
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx = support_open(0);
	struct mlx5vfio_health health;
	struct mlx5vfio *dev;
	int err;

	find_bar(ctx);
	destroy(argc == 2 ? argv[1] : "");
	dev = mlx5vfio_attach(ctx, NULL, NULL);
	support_require(dev != NULL, "attach failed");
	err = mlx5vfio_get_health(dev, &health);
	printf("guarded %d, health %d\n", mlx5vfio_guarded(dev), err);
	mlx5vfio_detach(dev);
	fflush(stdout);
	_exit(0);
}

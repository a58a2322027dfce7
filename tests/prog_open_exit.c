/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_open_exit: a program that ends while the close of its dead device is running. Prints that it has
 * begun.
 */
#include <stdio.h>

#include "test_open.h"

/* Not lost when main is over. */
static struct mlx5vfio *dev;

int main(void)
{
	dev = test_attach(0, NULL, NULL);
	support_sim("hang 0");
	support_require(!mlx5vfio_close(dev), "cannot close");
	puts("closing");
	return 0;
}

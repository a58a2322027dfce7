/* SPDX-License-Identifier: BSD-2-Clause */
/* prog_open_hold: opens device 0, says so, and keeps it until it is killed. */
#include <stdio.h>
#include <unistd.h>

#include "support/support.h"

int main(void)
{
	support_open(0);
	puts("open");
	fflush(stdout);
	for (;;)
		pause();
}

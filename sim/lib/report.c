/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines on stderr, each written at once so that threads and processes do not mix within one. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include "device.h"
#include "report.h"
#include "settings.h"

void report_line(const char *format, ...)
{
	char text[512] = "mlx5vfio-sim: ";
	size_t used = 14;
	int saved = errno, added;
	va_list args;

	va_start(args, format);
	added = vsnprintf(text + used, sizeof(text) - used - 1, format, args);
	va_end(args);
	if (added > 0)
		used += (size_t)added;
	if (used > sizeof(text) - 2)
		used = sizeof(text) - 2;
	text[used++] = '\n';
	if (write(STDERR_FILENO, text, used) < 0)
		errno = saved; /* nobody left to tell */
	errno = saved;
}

void report_device(const struct device *dev, const char *occasion)
{
	const struct mlx5vfio_sim_stats *s = &dev->stats;

	if (!settings()->report)
		return;
	report_line("%s: %s: commands %llu, eqes %llu, interrupts %llu, pages requested %llu, "
		    "given %llu, asked back %llu, returned %llu, DMA maps left %llu, "
		    "violations %llu",
		    dev->name, occasion, (unsigned long long)s->commands,
		    (unsigned long long)s->eqes, (unsigned long long)s->interrupts,
		    (unsigned long long)s->pages_requested, (unsigned long long)s->pages_given,
		    (unsigned long long)s->pages_asked_back, (unsigned long long)s->pages_returned,
		    (unsigned long long)s->dma_maps, (unsigned long long)s->violations);
}

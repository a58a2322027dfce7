/* SPDX-License-Identifier: BSD-2-Clause */
/* What the simulator tells on stderr. */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

struct device;

void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line of counters, when the program was started with --report. */
void report_device(const struct device *dev, const char *occasion);

#endif

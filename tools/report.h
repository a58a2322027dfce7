/* SPDX-License-Identifier: BSD-2-Clause */
/* What monitor prints: one line an event and a summary, as text or as JSON. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <mlx5vfio/eq.h>

struct report {
	FILE *out;
	bool json;
	uint64_t start_ns; /* of uv_hrtime() */
	int write_error;   /* errno of the first write that failed; nothing is printed after it */
};

/* One device in the summary. */
struct report_row {
	const char *pci;
	const char *state;
	double seconds; /* attached */
	struct mlx5vfio_stats stats;
};

void report_init(struct report *report, FILE *out, bool json);

/* Notices a reader that went away while there was nothing to print; sets write_error. */
void report_check_reader(struct report *report);

void report_opened(struct report *report, const char *pci, bool guarded, double open_ms);
/* As text this goes to stderr. */
void report_open_failed(struct report *report, const char *pci, const char *reason);
void report_wakeups(struct report *report, const char *pci, uint64_t count);
void report_error(struct report *report, const char *pci, int error);
void report_health(struct report *report, const char *pci, const struct mlx5vfio_health *health);
void report_port(struct report *report, const char *pci, const struct mlx5vfio_event *event);
/* Port changes of this device are not seen. */
void report_no_ports(struct report *report, const char *pci, int error);
void report_removal(struct report *report, const char *pci);
void report_closed(struct report *report, const char *pci, int error, double close_ms);
/* The device stays open until the process ends. */
void report_left_open(struct report *report, const char *pci, const char *reason);
void report_summary(struct report *report, const struct report_row *rows, int n);

#endif

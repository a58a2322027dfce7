/* SPDX-License-Identifier: BSD-2-Clause */
/* What monitor prints: one line an event and a summary, as text or as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>

#include <uv.h>

#include "json.h"
#include "report.h"

void report_init(struct report *report, FILE *out, bool json)
{
	*report = (struct report){ .out = out, .json = json, .start_ns = uv_hrtime() };
}

static double seconds_since_start(const struct report *report)
{
	return (double)(uv_hrtime() - report->start_ns) / 1e9;
}

/* Line by line, so that a reader behind a pipe sees an event when it happens. */
static void flush_line(struct report *report)
{
	if (fflush(report->out) != 0)
		report->write_error = errno;
}

void report_check_reader(struct report *report)
{
	struct pollfd reader = { .fd = fileno(report->out) };

	if (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) && !report->write_error)
		report->write_error = EPIPE;
}

__attribute__((format(printf, 3, 4))) static void print_line(struct report *report, const char *pci,
							     const char *format, ...)
{
	va_list args;

	if (report->write_error)
		return;
	fprintf(report->out, "%10.3f  %s  ", seconds_since_start(report), pci);
	va_start(args, format);
	vfprintf(report->out, format, args);
	va_end(args);
	fputc('\n', report->out);
	flush_line(report);
}

static void begin_event(const struct report *report, struct json *json, const char *event,
			const char *pci)
{
	json_begin(json, report->out);
	json_decimal(json, "time", seconds_since_start(report));
	json_string(json, "event", event);
	json_string(json, "device", pci);
}

static void end_event(struct report *report, struct json *json)
{
	json_end(json);
	flush_line(report);
}

/* False, with nothing begun, when the event is to be printed as text or not at all. */
static bool begin_json(const struct report *report, struct json *json, const char *event,
		       const char *pci)
{
	if (!report->json || report->write_error)
		return false;
	begin_event(report, json, event, pci);
	return true;
}

static const char *error_text(int error, char *text, size_t size)
{
	char message[96], name[32];

	if (error == 0)
		return "no error";
	uv_strerror_r(error, message, sizeof(message));
	uv_err_name_r(error, name, sizeof(name));
	snprintf(text, size, "%s (%s)", message, name);
	return text;
}

void report_opened(struct report *report, const char *pci, bool guarded, double open_ms)
{
	struct json json;

	if (begin_json(report, &json, "opened", pci)) {
		json_bool(&json, "guarded", guarded);
		json_decimal(&json, "open_ms", open_ms);
		end_event(report, &json);
	} else if (!report->json) {
		print_line(report, pci, "opened in %.1f ms, %s", open_ms,
			   guarded ? "guarded" : "not guarded: a fault will abort the process");
	}
}

void report_open_failed(struct report *report, const char *pci, const char *reason)
{
	struct json json;

	if (begin_json(report, &json, "open-failed", pci)) {
		json_string(&json, "reason", reason);
		end_event(report, &json);
	} else if (!report->json) {
		fprintf(stderr, "mlx5vfio: cannot open %s: %s\n", pci, reason);
	}
}

void report_wakeups(struct report *report, const char *pci, uint64_t count)
{
	struct json json;

	if (begin_json(report, &json, "wakeups", pci)) {
		json_count(&json, "count", count);
		end_event(report, &json);
	} else if (!report->json) {
		print_line(report, pci, "%" PRIu64 " wakeup%s", count, count == 1 ? "" : "s");
	}
}

void report_error(struct report *report, const char *pci, int error)
{
	struct json json;
	char text[160];
	const char *reason = error_text(error, text, sizeof(text));

	if (begin_json(report, &json, "error", pci)) {
		json_number(&json, "error", error);
		json_string(&json, "reason", reason);
		end_event(report, &json);
	} else if (!report->json) {
		print_line(report, pci, "error: %s", reason);
	}
}

static const char *health_state(const struct mlx5vfio_health *health)
{
	if (health->fault != MLX5VFIO_OK)
		return "fault";
	return health->warning ? "warning" : "cleared";
}

static void health_json(struct report *report, struct json *json,
			const struct mlx5vfio_health *health)
{
	char firmware[32];

	snprintf(firmware, sizeof(firmware), "%u.%u.%04u", health->fw_major, health->fw_minor,
		 health->fw_subminor);
	json_string(json, "state", health_state(health));
	json_string(json, "fault", mlx5vfio_fault_str(health->fault));
	json_number(json, "synd", health->synd);
	json_string(json, "synd_text", mlx5vfio_synd_str(health->synd));
	json_number(json, "ext_synd", health->ext_synd);
	json_bool(json, "recovery_request", health->recovery_request);
	json_string(json, "firmware", firmware);
	json_number(json, "hw_id", health->hw_id);
	json_number(json, "irisc_index", health->irisc_index);
	json_words(json, "assert_var", health->assert_var, 5);
	json_number(json, "assert_exit_ptr", health->assert_exit_ptr);
	json_number(json, "assert_callra", health->assert_callra);
	json_number(json, "counter", health->counter);
	json_number(json, "unmoved_ms", health->unmoved_ms);
	end_event(report, json);
}

/* A fault has a name; a warning is what its syndrome says, and without one a PCI error. */
static const char *health_heading(const struct mlx5vfio_health *health, char *text, size_t size)
{
	if (health->fault == MLX5VFIO_OK)
		return health->warning && health->synd == 0 ? "warning: PCI error signalled"
							    : health_state(health);
	snprintf(text, size, "fault: %s", mlx5vfio_fault_str(health->fault));
	return text;
}

static void health_text(struct report *report, const char *pci,
			const struct mlx5vfio_health *health)
{
	const uint32_t *var = health->assert_var;
	char heading[64];

	print_line(report, pci,
		   "%s; syndrome 0x%02x (%s), extended 0x%04x%s; firmware %u.%u.%04u, "
		   "hardware id 0x%08x, core %u; assert %08x %08x %08x %08x %08x, exit pointer "
		   "%08x, caller %08x; counter %u, unmoved for %u ms",
		   health_heading(health, heading, sizeof(heading)), health->synd,
		   mlx5vfio_synd_str(health->synd), health->ext_synd,
		   health->recovery_request ? ", recovery requested" : "", health->fw_major,
		   health->fw_minor, health->fw_subminor, health->hw_id, health->irisc_index,
		   var[0], var[1], var[2], var[3], var[4], health->assert_exit_ptr,
		   health->assert_callra, health->counter, health->unmoved_ms);
}

/* All registers read as ones then: a report of them would look like one of firmware. */
static void offline_text(struct report *report, const char *pci,
			 const struct mlx5vfio_health *health)
{
	print_line(report, pci, "fault: %s; no register can be read",
		   mlx5vfio_fault_str(health->fault));
}

void report_health(struct report *report, const char *pci, const struct mlx5vfio_health *health)
{
	struct json json;

	if (begin_json(report, &json, "health", pci))
		health_json(report, &json, health);
	else if (!report->json && health->fault == MLX5VFIO_PCI_OFFLINE)
		offline_text(report, pci, health);
	else if (!report->json)
		health_text(report, pci, health);
}

static const char *port_state(uint8_t state)
{
	switch (state) {
	case MLX5VFIO_PORT_DOWN:
		return "down";
	case MLX5VFIO_PORT_UP:
		return "up";
	case MLX5VFIO_PORT_INITIALIZED:
		return "initialized";
	case MLX5VFIO_PORT_LID_CHANGE:
		return "LID change";
	case MLX5VFIO_PORT_PKEY_CHANGE:
		return "P_Key change";
	case MLX5VFIO_PORT_GUID_CHANGE:
		return "GUID change";
	case MLX5VFIO_PORT_CLIENT_REREGISTER:
		return "client reregistration";
	default:
		return "unknown";
	}
}

void report_port(struct report *report, const char *pci, const struct mlx5vfio_event *event)
{
	const char *state = port_state(event->sub_type);
	struct json json;

	if (begin_json(report, &json, "port", pci)) {
		json_number(&json, "port", event->port);
		json_string(&json, "state", state);
		json_number(&json, "sub_type", event->sub_type);
		end_event(report, &json);
	} else if (!report->json) {
		print_line(report, pci, "port %u: %s", event->port, state);
	}
}

void report_no_ports(struct report *report, const char *pci, int error)
{
	struct json json;
	char text[160];
	const char *reason = error_text(error, text, sizeof(text));

	if (begin_json(report, &json, "no-port-events", pci)) {
		json_string(&json, "reason", reason);
		end_event(report, &json);
	} else if (!report->json) {
		print_line(report, pci, "port changes are not seen: %s", reason);
	}
}

void report_removal(struct report *report, const char *pci)
{
	struct json json;

	if (begin_json(report, &json, "removal", pci))
		end_event(report, &json);
	else if (!report->json)
		print_line(report, pci, "the kernel asks for the device back");
}

void report_closed(struct report *report, const char *pci, int error, double close_ms)
{
	struct json json;
	char text[160];

	if (begin_json(report, &json, "closed", pci)) {
		json_number(&json, "error", error);
		json_decimal(&json, "close_ms", close_ms);
		end_event(report, &json);
	} else if (!report->json && error) {
		print_line(report, pci, "closed with an error: %s",
			   error_text(error, text, sizeof(text)));
	} else if (!report->json) {
		print_line(report, pci, "closed in %.1f ms", close_ms);
	}
}

void report_left_open(struct report *report, const char *pci, const char *reason)
{
	struct json json;

	if (begin_json(report, &json, "left-open", pci)) {
		json_string(&json, "reason", reason);
		end_event(report, &json);
	} else if (!report->json) {
		print_line(report, pci, "left open: %s", reason);
	}
}

static void summary_text(struct report *report, const struct report_row *rows, int n)
{
	int i;

	fprintf(report->out, "\n%-12s  %-10s %9s %9s %9s %9s %7s %8s\n", "device", "state",
		"seconds", "wakeups", "ticks", "calls", "errors", "samples");
	for (i = 0; i < n; i++) {
		const struct mlx5vfio_stats *stats = &rows[i].stats;

		fprintf(report->out,
			"%-12s  %-10s %9.3f %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %7" PRIu64
			" %8" PRIu64 "\n",
			rows[i].pci, rows[i].state, rows[i].seconds, stats->wakeups, stats->ticks,
			stats->calls, stats->errors, stats->samples);
	}
	flush_line(report);
}

static void summary_json(struct report *report, const struct report_row *row)
{
	struct json json;

	begin_event(report, &json, "summary", row->pci);
	json_string(&json, "state", row->state);
	json_decimal(&json, "seconds", row->seconds);
	json_count(&json, "wakeups", row->stats.wakeups);
	json_count(&json, "ticks", row->stats.ticks);
	json_count(&json, "calls", row->stats.calls);
	json_count(&json, "errors", row->stats.errors);
	json_count(&json, "samples", row->stats.samples);
	end_event(report, &json);
}

void report_summary(struct report *report, const struct report_row *rows, int n)
{
	int i;

	if (report->write_error)
		return;
	if (!report->json) {
		summary_text(report, rows, n);
		return;
	}
	for (i = 0; i < n && !report->write_error; i++)
		summary_json(report, &rows[i]);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of one monitored device: opened on a worker, attached on the loop, closed by the
 * library.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include <infiniband/verbs.h>

#include <mlx5vfio/uv.h>

#include "watched.h"

/* Entries for port changes: few ever come at once. */
#define PORT_QUEUE_LOG_SIZE 6

static double milliseconds_since(uint64_t start_ns)
{
	return (double)(uv_hrtime() - start_ns) / 1e6;
}

static void end(struct watched *watched, enum watched_state state)
{
	watched->state = state;
	watched->ended(watched);
}

/*
 * A signal handled by a thread that is inside a verb makes the verb fail, and libuv's workers take
 * signals like any thread. This program has no other use for them, so the mask stays.
 */
static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

/* From here on the device is the library's. A dead one takes minutes, which nobody waits for. */
static void start_closing(struct watched *watched)
{
	int error;

	mlx5vfio_get_stats(watched->dev, &watched->stats, sizeof(watched->stats));
	watched->detached_at = uv_hrtime();
	watched->state = WATCHED_CLOSING;
	error = mlx5vfio_close(watched->dev);
	if (!error)
		return;
	mlx5vfio_detach(watched->dev);
	report_left_open(watched->report, watched->pci, uv_strerror(error));
	end(watched, WATCHED_ABANDONED);
}

static void on_closed(int error, void *arg)
{
	struct watched *watched = arg;

	if (watched->state != WATCHED_ABANDONED)
		report_closed(watched->report, watched->pci, error,
			      milliseconds_since(watched->detached_at));
	if (watched->state == WATCHED_CLOSING)
		end(watched, WATCHED_CLOSED);
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct watched *watched = arg;

	report_health(watched->report, watched->pci, health);
	if (health->fault == MLX5VFIO_OK)
		return;
	mlx5vfio_unref(dev);
	start_closing(watched);
	if (watched->state == WATCHED_CLOSING)
		end(watched, WATCHED_DEAD);
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	const struct watched *watched = arg;

	(void)dev;
	report_error(watched->report, watched->pci, error);
}

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	struct watched *watched = arg;

	(void)dev;
	report_removal(watched->report, watched->pci);
	watched_stop(watched);
}

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	struct watched *watched = arg;

	if (event->type == MLX5VFIO_EVENT_PORT_STATE_CHANGE) {
		report_port(watched->report, watched->pci, event);
	} else if (event->type == MLX5VFIO_EVENT_QUEUE_OVERRUN) {
		report_no_ports(watched->report, watched->pci, -EOVERFLOW);
		mlx5vfio_eq_close(eq);
	}
}

/* A device without a vector to spare is worth watching all the same. */
static void watch_ports(struct watched *watched)
{
	const struct mlx5vfio_eq_attr attr = {
		.log_size = PORT_QUEUE_LOG_SIZE,
		.events = UINT64_C(1) << MLX5VFIO_EVENT_PORT_STATE_CHANGE,
	};

	if (!mlx5vfio_eq_open(watched->dev, &attr, on_event, watched))
		report_no_ports(watched->report, watched->pci, -errno);
}

static int attach(struct watched *watched)
{
	static const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
		.removal = on_removal,
		.closed = on_closed,
	};

	watched->dev = mlx5vfio_uv_attach(watched->loop, watched->ctx);
	if (!watched->dev)
		return -errno;
	watched->attached_at = uv_hrtime();
	mlx5vfio_set_handlers(watched->dev, &handlers, watched);
	if (watched->unguarded)
		mlx5vfio_set_guard(watched->dev, false);
	if (watched->interval_ms >= 0)
		mlx5vfio_set_interval(watched->dev, watched->interval_ms);
	return 0;
}

/* Opened and not attached: rare enough to hold up the loop for the few milliseconds it takes. */
static void close_unattached(struct watched *watched, enum watched_state state)
{
	ibv_close_device(watched->ctx);
	end(watched, state);
}

static void refuse(struct watched *watched, int error)
{
	snprintf(watched->why, sizeof(watched->why), "it opens but cannot be attached: %s",
		 uv_strerror(error));
	report_open_failed(watched->report, watched->pci, watched->why);
	close_unattached(watched, WATCHED_NOT_OPENED);
}

static void open_work(uv_work_t *work)
{
	struct watched *watched = work->data;

	block_signals();
	watched->work_started = uv_hrtime();
	watched->ctx = mlx5vfio_open(watched->pci, 0, watched->why, sizeof(watched->why));
}

static void go_live(struct watched *watched)
{
	double open_ms = milliseconds_since(watched->work_started);
	int error = attach(watched);

	if (error) {
		refuse(watched, error);
		return;
	}
	watched->state = WATCHED_LIVE;
	report_opened(watched->report, watched->pci, mlx5vfio_guarded(watched->dev), open_ms);
	watch_ports(watched);
}

static void open_done(uv_work_t *work, int status)
{
	struct watched *watched = work->data;

	if (watched->state == WATCHED_ABANDONED)
		return;
	if (status == UV_ECANCELED) {
		end(watched, WATCHED_CANCELLED);
	} else if (!watched->ctx) {
		report_open_failed(watched->report, watched->pci, watched->why);
		end(watched, WATCHED_NOT_OPENED);
	} else if (watched->stopping) {
		close_unattached(watched, WATCHED_CANCELLED);
	} else {
		go_live(watched);
	}
}

int watched_open(struct watched *watched)
{
	watched->work.data = watched;
	watched->state = WATCHED_OPENING;
	return uv_queue_work(watched->loop, &watched->work, open_work, open_done);
}

void watched_stop(struct watched *watched)
{
	watched->stopping = true;
	if (watched->state == WATCHED_OPENING)
		uv_cancel((uv_req_t *)&watched->work);
	if (watched->state == WATCHED_LIVE)
		start_closing(watched);
}

bool watched_abandon(struct watched *watched)
{
	if (watched_has_ended(watched))
		return false;
	report_left_open(watched->report, watched->pci,
			 watched->state == WATCHED_OPENING ? "it is still being opened"
							   : "it is still being closed");
	watched->state = WATCHED_ABANDONED;
	return true;
}

void watched_show_wakeups(struct watched *watched)
{
	struct mlx5vfio_stats stats;

	if (watched->state != WATCHED_LIVE)
		return;
	mlx5vfio_get_stats(watched->dev, &stats, sizeof(stats));
	if (stats.wakeups == watched->wakeups_shown)
		return;
	report_wakeups(watched->report, watched->pci, stats.wakeups - watched->wakeups_shown);
	watched->wakeups_shown = stats.wakeups;
}

bool watched_has_ended(const struct watched *watched)
{
	return watched->state >= WATCHED_CLOSED;
}

static const char *state_name(const struct watched *watched)
{
	switch (watched->state) {
	case WATCHED_CLOSED:
		return "closed";
	case WATCHED_CANCELLED:
		return "cancelled";
	case WATCHED_NOT_OPENED:
		return "not opened";
	case WATCHED_DEAD:
		return "dead";
	default:
		return "abandoned";
	}
}

struct report_row watched_summary(const struct watched *watched)
{
	return (struct report_row){
		.pci = watched->pci,
		.state = state_name(watched),
		.seconds = (double)(watched->detached_at - watched->attached_at) / 1e9,
		.stats = watched->stats,
	};
}

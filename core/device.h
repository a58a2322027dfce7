/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of one attached device, shared by the files of core and by nobody else. */
#ifndef CORE_DEVICE_H
#define CORE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include <mlx5vfio/core.h>

#include "clock.h"
#include "closer.h"
#include "guard.h"
#include "vfio.h"

enum device_state {
	DEVICE_LIVE,     /* events are processed */
	DEVICE_ENDED,    /* a fault, or the fd is gone: never processed again, still attached */
	DEVICE_CLOSING,  /* its ctx belongs to a closer, whose end the loop waits for */
	DEVICE_DETACHED, /* only .detached is left to call */
};

#define NEVER INT64_MAX

struct mlx5vfio {
	struct ibv_context *ctx;
	int fd;
	const struct mlx5vfio_loop_ops *ops; /* NULL: the program polls by itself */
	void *loop;
	struct mlx5vfio_handlers handlers;
	void *arg;

	enum device_state state;
	unsigned depth; /* calls into this device on the stack: memory stays until they return */
	bool released;  /* the loop has let go */

	atomic_bool fd_taken; /* another ctx has this fd now: ours was closed without a detach */
	bool watching;        /* what the loop was last told */
	bool watch_broken;    /* the loop cannot watch the fd: the tick alone serves the device */
	bool settled;     /* the fd is watched, all is as told, nothing fails, failed or waits */
	bool woken;       /* by ourselves, because there was no timer */
	int64_t timer_at; /* when the loop's timer fires, NEVER if it does not run */

	int interval_ms;
	int64_t tick_at;
	int64_t retry_at;
	unsigned retry_step;
	unsigned hurry; /* quick retries left, see process.c */
	int failing;  /* what the last call ended with, 0 or a negative errno; not 0: retries run */
	int reported; /* what .error was last told, 0 after a success */

	struct guard guard;
	int64_t held_until; /* the guard put the next call off; NEVER: it did not */
	enum mlx5vfio_fault fault;
	bool fault_told;               /* .health has heard of it, or stderr */
	struct mlx5vfio_health report; /* the registers as they were when the fault was found */
	uint32_t warned;               /* what .health was last warned of, 0 for nothing */

	struct vfio_notices notices; /* -1 each for a ctx that mlx5vfio_open() did not open */
	bool removal_told;
	int64_t suspect_until; /* a PCI error was signalled: look closely until then; 0: none was */

	struct closer *closer;
	struct mlx5vfio_eq *eqs;

	pthread_t thread; /* the loop's, once thread_known */
	bool thread_known;

	struct mlx5vfio_stats stats;
	struct mlx5vfio *next; /* in the attach registry */
};

/* registry.c: no two attached devices share a ctx or an fd. */
int registry_add(struct mlx5vfio *dev);
void registry_remove(struct mlx5vfio *dev);

/* schedule.c: what the device wants of its loop. */
int64_t schedule_next_tick(const struct mlx5vfio *dev, int64_t now);
int64_t schedule_deadline(const struct mlx5vfio *dev);
int schedule_start(struct mlx5vfio *dev);
void schedule_stop(struct mlx5vfio *dev);
void schedule_update(struct mlx5vfio *dev);

/* process.c */
void device_failed(struct mlx5vfio *dev, int error);
void device_retry_later(struct mlx5vfio *dev);
void device_report(struct mlx5vfio *dev, int error);
bool device_fd_is_open(const struct mlx5vfio *dev);
bool device_fd_is_readable(int fd); /* the device's, or that of one of its queues */
void device_end_without_fd(struct mlx5vfio *dev);

/* health.c */
bool health_ok(struct mlx5vfio *dev);
bool health_alive(struct mlx5vfio *dev);
void health_fault(struct mlx5vfio *dev, enum mlx5vfio_fault fault);
void health_tell(struct mlx5vfio *dev);

/* notices.c: the kernel's wish to have the device back, and PCI errors. */
void notices_read(struct mlx5vfio *dev);
void notices_read_error(struct mlx5vfio *dev);

/* It ends with a tick, which tells. */
static inline bool notices_suspect(const struct mlx5vfio *dev)
{
	return dev->suspect_until != 0;
}

/* close.c */
int close_process(struct mlx5vfio *dev, int fd, int revents);
void close_unwatch(struct mlx5vfio *dev);
void close_forget(struct mlx5vfio *dev);

/* attach.c: the last step of a device. */
void device_release(struct mlx5vfio *dev);

/* attach.c: brackets around everything that may call a handler. */
void device_enter(struct mlx5vfio *dev);
void device_leave(struct mlx5vfio *dev);

#endif

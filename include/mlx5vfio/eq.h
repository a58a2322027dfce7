/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues of a device in the same loop: port changes, completions, errors of queues.
 *
 * The device's own fd carries only firmware's business (commands, pages). What an application
 * waits for comes through event queues of its own, each on an interrupt vector of its own. This
 * header opens one and hands out its entries decoded. All calls are made on the device's thread.
 */
#ifndef MLX5VFIO_EQ_H
#define MLX5VFIO_EQ_H

#include <mlx5vfio/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Event types, as the programmer's reference manual names and numbers them. */
enum mlx5vfio_event_type {
	MLX5VFIO_EVENT_COMPLETION = 0x00,
	MLX5VFIO_EVENT_PATH_MIGRATED = 0x01,
	MLX5VFIO_EVENT_COMMUNICATION_ESTABLISHED = 0x02,
	MLX5VFIO_EVENT_SEND_QUEUE_DRAINED = 0x03,
	MLX5VFIO_EVENT_CQ_ERROR = 0x04,
	MLX5VFIO_EVENT_WQ_CATASTROPHIC_ERROR = 0x05,
	MLX5VFIO_EVENT_PATH_MIGRATION_FAILED = 0x07,
	MLX5VFIO_EVENT_INTERNAL_ERROR = 0x08,
	MLX5VFIO_EVENT_PORT_STATE_CHANGE = 0x09,
	MLX5VFIO_EVENT_PAGE_FAULT = 0x0c,
	MLX5VFIO_EVENT_NIC_VPORT_CHANGE = 0x0d,
	MLX5VFIO_EVENT_ESW_FUNCTIONS_CHANGED = 0x0e,
	MLX5VFIO_EVENT_VHCA_STATE_CHANGE = 0x0f,
	MLX5VFIO_EVENT_WQ_INVALID_REQUEST_ERROR = 0x10,
	MLX5VFIO_EVENT_WQ_ACCESS_ERROR = 0x11,
	MLX5VFIO_EVENT_SRQ_CATASTROPHIC_ERROR = 0x12,
	MLX5VFIO_EVENT_LAST_WQE_REACHED = 0x13,
	MLX5VFIO_EVENT_SRQ_LIMIT = 0x14,
	MLX5VFIO_EVENT_GPIO = 0x15,
	MLX5VFIO_EVENT_PORT_MODULE = 0x16,
	MLX5VFIO_EVENT_TEMPERATURE_WARNING = 0x17,
	MLX5VFIO_EVENT_XRQ_ERROR = 0x18,
	MLX5VFIO_EVENT_REMOTE_CONFIG = 0x19,
	MLX5VFIO_EVENT_DB_BF_CONGESTION = 0x1a,
	MLX5VFIO_EVENT_STALL = 0x1b,
	MLX5VFIO_EVENT_DCT_DRAINED = 0x1c,
	MLX5VFIO_EVENT_DCT_KEY_VIOLATION = 0x1d,
	MLX5VFIO_EVENT_FPGA_ERROR = 0x20,
	MLX5VFIO_EVENT_FPGA_QP_ERROR = 0x21,
	MLX5VFIO_EVENT_GENERAL = 0x22,
	MLX5VFIO_EVENT_MONITOR_COUNTER = 0x24,
	MLX5VFIO_EVENT_PPS = 0x25,
	MLX5VFIO_EVENT_DEVICE_TRACER = 0x26,
	MLX5VFIO_EVENT_OBJECT_CHANGE = 0x27,
	/*
	 * Not the device's: the queue has overrun and entries are lost; nothing comes through it
	 * any more.
	 */
	MLX5VFIO_EVENT_QUEUE_OVERRUN = 0x100,
};

/* Sub-types of MLX5VFIO_EVENT_PORT_STATE_CHANGE. */
enum mlx5vfio_port_state {
	MLX5VFIO_PORT_DOWN = 0x1,
	MLX5VFIO_PORT_UP = 0x4,
	MLX5VFIO_PORT_INITIALIZED = 0x5,
	MLX5VFIO_PORT_LID_CHANGE = 0x6,
	MLX5VFIO_PORT_PKEY_CHANGE = 0x7,
	MLX5VFIO_PORT_GUID_CHANGE = 0x8,
	MLX5VFIO_PORT_CLIENT_REREGISTER = 0x9,
};

/*
 * One event. Which member of the union holds depends on type; it takes the place of raw[0], and the
 * rest of raw holds for every type: raw[5] >> 24 is the kind of queue that qpn is of (0 QP, 1 RQ,
 * 2 SQ), raw[2] & 0xff the syndrome of a CQ error.
 */
struct mlx5vfio_event {
	enum mlx5vfio_event_type type; /* other values may come: what the mask asked for */
	uint8_t sub_type;
	union {
		uint8_t port;  /* port state change: the port's number, from 1 */
		uint32_t cqn;  /* completion, CQ error */
		uint32_t qpn;  /* work queue errors, path migration and the like; a drained DCT */
		uint32_t srqn; /* SRQ errors and limits */
		uint32_t raw
			[7]; /* the entry's data in host byte order; raw[0] for all other types */
	};
};

struct mlx5vfio_eq;

/*
 * Called for each event, from inside the loop. event is gone when it returns. Any function of the
 * library may be called from it, also mlx5vfio_eq_close() for this queue and mlx5vfio_detach().
 */
typedef void mlx5vfio_event_fn(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event,
			       void *arg);

struct mlx5vfio_eq_attr {
	unsigned log_size; /* entries as a power of two, 4 to 16; 0: 8, that is 256 entries */
	unsigned budget;   /* events handed out per turn of the loop at most; 0: 64 */
	uint64_t events;   /* bit N: events of type N are wanted; completions need no bit */
};

/*
 * Opens an event queue on an interrupt vector of its own and puts it into dev's loop. Looks at the
 * device's health and executes a device command, with the signals blocked that have handlers:
 * microseconds on a healthy device, for ever on one whose firmware hangs and does not show it.
 *
 * More events than the budget are handed out on the loop's next turns, so that a storm does not
 * starve what else the loop has to do. The queue must be large enough for what comes meanwhile: an
 * overrun loses events and ends the queue (MLX5VFIO_EVENT_QUEUE_OVERRUN). Where the entries do not
 * show it, it is noticed within two ticks, on a guarded device; with mlx5vfio_set_interval(dev, 0)
 * it is not. The tick also hands out events whose interrupt got lost.
 *
 * Returns NULL with errno EINVAL (NULL dev, attr or on_event, a size out of range, command or page
 * request events, which are libmlx5's), ENODEV (the device is dead or closing), EBADF (its ctx was
 * closed), ENOSPC (no vector is free), ENOMEM, EMFILE or ENFILE (no descriptor for the vector),
 * EREMOTEIO or EIO (the device refused), or the error of the loop's watch.
 */
MLX5VFIO_API struct mlx5vfio_eq *mlx5vfio_eq_open(struct mlx5vfio *dev,
						  const struct mlx5vfio_eq_attr *attr,
						  mlx5vfio_event_fn *on_event, void *arg);

/*
 * Closes the queue: on_event is not called any more. On a device that is alive a command is
 * executed, as in mlx5vfio_eq_open(); first destroy the CQs that report to the queue. Queues that
 * are still open are closed when their device is detached or closed. NULL is ignored.
 */
MLX5VFIO_API void mlx5vfio_eq_close(struct mlx5vfio_eq *eq);

/*
 * The queue's number, to create a CQ on it (c_eqn of the CQ context). 0, which no queue has, for
 * NULL. Like mlx5vfio_eq_device() it may be called until the handler that closed the queue returns.
 */
MLX5VFIO_API uint32_t mlx5vfio_eq_number(const struct mlx5vfio_eq *eq);

/* The device the queue was opened on; NULL for NULL. */
MLX5VFIO_API struct mlx5vfio *mlx5vfio_eq_device(const struct mlx5vfio_eq *eq);

/* A few words for an event's type. A static string, never NULL. */
MLX5VFIO_API const char *mlx5vfio_event_str(enum mlx5vfio_event_type type);

#ifdef __cplusplus
}
#endif

#endif

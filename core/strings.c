/* SPDX-License-Identifier: BSD-2-Clause */
/* Words for numbers. */
#include <mlx5vfio/eq.h>

const char *mlx5vfio_fault_str(enum mlx5vfio_fault fault)
{
	switch (fault) {
	case MLX5VFIO_OK:
		return "healthy";
	case MLX5VFIO_PCI_OFFLINE:
		return "PCI offline";
	case MLX5VFIO_NIC_DISABLED:
		return "NIC interface disabled";
	case MLX5VFIO_NIC_RESET:
		return "NIC interface in software reset";
	case MLX5VFIO_FW_FATAL:
		return "fatal firmware error";
	case MLX5VFIO_STALLED:
		return "health counter stalled";
	case MLX5VFIO_FOREIGN_RESET:
		return "reset by somebody else";
	case MLX5VFIO_PCI_ERROR:
		return "PCI error";
	}
	return "unknown fault";
}

/* The syndromes of the health buffer, as the programmer's reference manual numbers them. */
const char *mlx5vfio_synd_str(uint8_t synd)
{
	switch (synd) {
	case 0x0:
		return "none";
	case 0x1:
		return "firmware internal error";
	case 0x7:
		return "firmware core not responding";
	case 0x8:
		return "unrecoverable hardware error";
	case 0x9:
		return "firmware CRC error";
	case 0xa:
		return "PCI error on ICM fetch";
	case 0xb:
		return "fatal hardware error";
	case 0xc:
		return "asynchronous event queue overrun";
	case 0xd:
		return "event queue error";
	case 0xe:
		return "invalid event queue referenced";
	case 0xf:
		return "FFSER error";
	case 0x10:
		return "high temperature";
	}
	return "unknown syndrome";
}

const char *mlx5vfio_event_str(enum mlx5vfio_event_type type)
{
	switch (type) {
	case MLX5VFIO_EVENT_COMPLETION:
		return "completion";
	case MLX5VFIO_EVENT_PATH_MIGRATED:
		return "path migrated";
	case MLX5VFIO_EVENT_COMMUNICATION_ESTABLISHED:
		return "communication established";
	case MLX5VFIO_EVENT_SEND_QUEUE_DRAINED:
		return "send queue drained";
	case MLX5VFIO_EVENT_CQ_ERROR:
		return "CQ error";
	case MLX5VFIO_EVENT_WQ_CATASTROPHIC_ERROR:
		return "work queue catastrophic error";
	case MLX5VFIO_EVENT_PATH_MIGRATION_FAILED:
		return "path migration failed";
	case MLX5VFIO_EVENT_INTERNAL_ERROR:
		return "internal error";
	case MLX5VFIO_EVENT_PORT_STATE_CHANGE:
		return "port state change";
	case MLX5VFIO_EVENT_PAGE_FAULT:
		return "page fault";
	case MLX5VFIO_EVENT_NIC_VPORT_CHANGE:
		return "NIC vport change";
	case MLX5VFIO_EVENT_ESW_FUNCTIONS_CHANGED:
		return "e-switch functions changed";
	case MLX5VFIO_EVENT_VHCA_STATE_CHANGE:
		return "VHCA state change";
	case MLX5VFIO_EVENT_WQ_INVALID_REQUEST_ERROR:
		return "work queue invalid request error";
	case MLX5VFIO_EVENT_WQ_ACCESS_ERROR:
		return "work queue access error";
	case MLX5VFIO_EVENT_SRQ_CATASTROPHIC_ERROR:
		return "SRQ catastrophic error";
	case MLX5VFIO_EVENT_LAST_WQE_REACHED:
		return "last WQE reached";
	case MLX5VFIO_EVENT_SRQ_LIMIT:
		return "SRQ limit reached";
	case MLX5VFIO_EVENT_GPIO:
		return "GPIO event";
	case MLX5VFIO_EVENT_PORT_MODULE:
		return "port module event";
	case MLX5VFIO_EVENT_TEMPERATURE_WARNING:
		return "temperature warning";
	case MLX5VFIO_EVENT_XRQ_ERROR:
		return "XRQ error";
	case MLX5VFIO_EVENT_REMOTE_CONFIG:
		return "remote configuration";
	case MLX5VFIO_EVENT_DB_BF_CONGESTION:
		return "doorbell congestion";
	case MLX5VFIO_EVENT_STALL:
		return "stall";
	case MLX5VFIO_EVENT_DCT_DRAINED:
		return "DCT drained";
	case MLX5VFIO_EVENT_DCT_KEY_VIOLATION:
		return "DCT key violation";
	case MLX5VFIO_EVENT_FPGA_ERROR:
		return "FPGA error";
	case MLX5VFIO_EVENT_FPGA_QP_ERROR:
		return "FPGA QP error";
	case MLX5VFIO_EVENT_GENERAL:
		return "general event";
	case MLX5VFIO_EVENT_MONITOR_COUNTER:
		return "monitor counter";
	case MLX5VFIO_EVENT_PPS:
		return "pulse per second";
	case MLX5VFIO_EVENT_DEVICE_TRACER:
		return "device tracer";
	case MLX5VFIO_EVENT_OBJECT_CHANGE:
		return "object change";
	case MLX5VFIO_EVENT_QUEUE_OVERRUN:
		return "event queue overrun";
	}
	return "unknown event";
}

const char *mlx5vfio_version(void)
{
	return MLX5VFIO_VERSION;
}

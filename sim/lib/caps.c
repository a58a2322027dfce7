/* SPDX-License-Identifier: BSD-2-Clause */
/* The capabilities that the device tells: its port, and limits of a plausible size. */
#include "bytes.h"
#include "device.h"
#include "settings.h"

enum {
	CAPS_GENERAL = 0,
	CAPS_ROCE = 4,
	AT_CAPS = 0x10,
	AT_PORT_TYPE = 0x36,
	PORT_INFINIBAND = 0,
	PORT_ETHERNET = 1,
};

/* Whole bytes of the general capabilities. */
static const struct {
	uint16_t at;
	uint8_t value;
} general[] = {
	{ 0x10, 15 },          /* log_max_srq_sz */
	{ 0x11, 15 },          /* log_max_qp_sz */
	{ 0x13, 18 },          /* log_max_qp */
	{ 0x15, 24 },          /* log_max_srq */
	{ 0x19, 22 },          /* log_max_cq_sz */
	{ 0x1b, 24 },          /* log_max_cq */
	{ 0x1c, 20 },          /* log_max_eq_sz */
	{ 0x1d, 22 },          /* log_max_mkey */
	{ 0x1f, 7 },           /* log_max_eq */
	{ 0x21, 64 },          /* log_max_mrw_sz */
	{ 0x22, 1 << 6 },      /* fast_teardown */
	{ 0x37, 1 },           /* num_ports */
	{ 0x38, 30 },          /* log_max_msg */
	{ 0x43, 1 << 2 },      /* roce */
	{ 0x48, 1 << 7 },      /* uar_4k */
	{ 0x49, 5 },           /* uar_sz: 32 MiB */
	{ 0x4a, 1 << 5 },      /* umem_uid_0 */
	{ 0x4b, 12 },          /* log_pg_sz */
	{ 0x63, 21 },          /* log_max_mcg */
	{ 0x64, 16 },          /* log_max_transport_domain */
	{ 0x65, 16 },          /* log_max_pd */
	{ 0x8f, MAX_EQS - 1 }, /* max_num_eqs */
};

static void fill_general(uint8_t *caps)
{
	for (size_t i = 0; i < sizeof(general) / sizeof(general[0]); i++)
		caps[general[i].at] = general[i].value;
	caps[AT_PORT_TYPE] = settings()->infiniband ? PORT_INFINIBAND : PORT_ETHERNET;
}

void caps_fill(uint8_t *out, unsigned type, bool current)
{
	uint8_t *caps = out + AT_CAPS;

	if (type == CAPS_GENERAL)
		fill_general(caps);
	/* sw_r_roce_src_udp_port is possible, but off until the driver sets it. */
	if (type == CAPS_ROCE && !current)
		caps[0] = 1 << 3;
}

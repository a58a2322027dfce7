/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one port: its state, the events when that changes, and the commands that ask for it or change
 * it.
 */
#include <string.h>
#include "bytes.h"
#include "device.h"
#include "opcode.h"
#include "settings.h"

enum {
	PORT_NUMBER = 1,
	EVENT_DATA_SIZE = 28,
	EVENT_DATA_PORT = 8, /* the high nibble is the port number */
	EVENT_UP = 4,
	EVENT_DOWN = 1,
};

/* The register PAOS (ports administrative and operational status) in ACCESS_REG. */
enum {
	REGISTER_PAOS = 0x5006,
	AT_REGISTER = 10,
	AT_PAOS = 16,
	PAOS_ADMIN = 2,
	PAOS_OPERATIONAL = 3,
	PAOS_MASK = 4,
	PAOS_SET_ADMIN = 1 << 7,
	PAOS_SIZE = 16,
	PAOS_UP = 1,
	PAOS_DOWN = 2,
};

/* MAD_IFC carries a management datagram; of these only PortInfo of LID-routed Get is known. */
enum {
	AT_MAD = 16,
	MAD_SIZE = 256,
	MAD_ATTRIBUTE = 16,
	MAD_PORT_STATE = 64 + 32,
	MAD_PORT_PHYSICAL = 64 + 33,
	ATTRIBUTE_PORT_INFO = 0x15,
	STATE_DOWN = 1,
	STATE_ACTIVE = 4,
	PHYSICAL_POLLING = 2,
	PHYSICAL_LINK_UP = 5,
};

/* QUERY_HCA_VPORT_CONTEXT */
enum {
	AT_VPORT = 16,
	VPORT_STATES = 0x22, /* physical, policy */
	VPORT_STATE = 0x23,
	VPORT_LID = 0x60,
	LID = 1,
};

/* An InfiniBand port stays down until it is told to come up. */
void port_reset(struct device *dev)
{
	dev->port_up = !settings()->infiniband;
}

static void fill_event(uint8_t data[EVENT_DATA_SIZE])
{
	memset(data, 0, EVENT_DATA_SIZE);
	data[EVENT_DATA_PORT] = PORT_NUMBER << 4;
}

void port_event(struct device *dev, bool up)
{
	uint8_t data[EVENT_DATA_SIZE];

	dev->port_up = up;
	fill_event(data);
	for (unsigned i = 1; i < MAX_EQS; i++)
		if (dev->eqs[i] && dev->eqs[i]->events >> EVENT_PORT & 1)
			eq_post(dev, dev->eqs[i], EVENT_PORT, up ? EVENT_UP : EVENT_DOWN, data);
}

struct event_job port_job(bool up)
{
	struct event_job job = {
		.type = EVENT_PORT,
		.sub_type = up ? EVENT_UP : EVENT_DOWN,
		.alternates = true,
	};

	fill_event(job.data);
	return job;
}

void port_flip(struct device *dev, struct event_job *job)
{
	dev->port_up = job->sub_type == EVENT_UP;
	job->sub_type = dev->port_up ? EVENT_DOWN : EVENT_UP;
}

static void set_admin(struct device *dev, const uint8_t *paos)
{
	bool up = (paos[PAOS_ADMIN] & 0xf) == PAOS_UP;

	if (paos[PAOS_MASK] & PAOS_SET_ADMIN && up != dev->port_up)
		port_event(dev, up);
}

uint8_t port_access_register(struct command *cmd)
{
	const uint8_t *in = cmd->in + AT_PAOS;
	uint8_t *out = cmd->out + AT_PAOS;
	bool read = get_be16(cmd->in + 6);

	if (get_be16(cmd->in + AT_REGISTER) != REGISTER_PAOS)
		return STATUS_OK;
	if (cmd->in_size < AT_PAOS + PAOS_SIZE)
		return STATUS_BAD_INPUT_SIZE;
	if (!read)
		set_admin(cmd->dev, in);
	out[1] = in[1];
	out[PAOS_ADMIN] = out[PAOS_OPERATIONAL] = cmd->dev->port_up ? PAOS_UP : PAOS_DOWN;
	return STATUS_OK;
}

/* In the high nibble, as everywhere. */
static uint8_t physical_state(const struct device *dev)
{
	return (uint8_t)((dev->port_up ? PHYSICAL_LINK_UP : PHYSICAL_POLLING) << 4);
}

uint8_t port_datagram(struct command *cmd)
{
	const uint8_t *in = cmd->in + AT_MAD;
	uint8_t *out = cmd->out + AT_MAD;

	if (get_be16(in + MAD_ATTRIBUTE) != ATTRIBUTE_PORT_INFO)
		return STATUS_BAD_PARAM;
	memcpy(out, in, MAD_SIZE);
	out[MAD_PORT_STATE] = cmd->dev->port_up ? STATE_ACTIVE : STATE_DOWN;
	out[MAD_PORT_PHYSICAL] = physical_state(cmd->dev);
	return STATUS_OK;
}

uint8_t port_vport(struct command *cmd)
{
	uint8_t state = cmd->dev->port_up ? STATE_ACTIVE : STATE_DOWN;
	uint8_t *out = cmd->out + AT_VPORT;

	out[VPORT_STATES] = physical_state(cmd->dev);
	out[VPORT_STATE] = (uint8_t)(state << 4 | state);
	put_be16(out + VPORT_LID, LID);
	return STATUS_OK;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What each command does. */
#include <stdlib.h>
#include "bytes.h"
#include "device.h"
#include "opcode.h"

enum {
	AT_MODIFIER = 6,
	AT_NUMBER = 9, /* of most objects, in commands and answers, 24 bits */
	AT_EQ_NUMBER = 11,
	AT_PROFILE = 10,
	AT_ISSI = 10,
	AT_SUPPORTED_ISSI = 0x6c,
	PROFILE_FAST = 2,
	INJECTED_SYNDROME = 0x51ed,
};

/* When a command is legal. */
enum stage {
	ALWAYS,
	ENABLED,
	ACTIVE,
};

struct opcode_entry {
	uint16_t opcode;
	enum stage stage;
	uint16_t in_size;
	uint8_t (*run)(struct command *cmd);
};

static uint8_t run_nothing(struct command *cmd)
{
	(void)cmd;
	return STATUS_OK;
}

static uint8_t run_enable(struct command *cmd)
{
	cmd->dev->enabled = true;
	return STATUS_OK;
}

static uint8_t run_disable(struct command *cmd)
{
	cmd->dev->enabled = false;
	return STATUS_OK;
}

static uint8_t run_init(struct command *cmd)
{
	if (cmd->dev->active)
		return STATUS_BAD_STATE;
	cmd->dev->active = true;
	return STATUS_OK;
}

/* A fast teardown ends when the program writes the NIC state; the pages stay lent until the reset. */
static uint8_t run_teardown(struct command *cmd)
{
	if (get_be16(cmd->in + AT_PROFILE) > PROFILE_FAST)
		return STATUS_BAD_PARAM;
	cmd->dev->active = false;
	return STATUS_OK;
}

static uint8_t run_query_issi(struct command *cmd)
{
	put_be32(cmd->out + AT_SUPPORTED_ISSI, 1 << 1 | 1 << 0);
	return STATUS_OK;
}

static uint8_t run_set_issi(struct command *cmd)
{
	return get_be16(cmd->in + AT_ISSI) <= 1 ? STATUS_OK : STATUS_BAD_PARAM;
}

static uint8_t run_query_caps(struct command *cmd)
{
	uint16_t modifier = get_be16(cmd->in + AT_MODIFIER);

	caps_fill(cmd->out, modifier >> 1, modifier & 1);
	return STATUS_OK;
}

static uint8_t run_alloc_uar(struct command *cmd)
{
	struct device *dev = cmd->dev;

	for (uint32_t uar = FIRST_UAR; uar < BAR_PAGES; uar++) {
		bool used = false;

		for (unsigned i = 0; i < dev->uar_count; i++)
			used |= dev->uars[i] == uar;
		if (used)
			continue;
		uar_add(dev, uar);
		put_be24(cmd->out + AT_NUMBER, uar);
		return STATUS_OK;
	}
	return STATUS_NO_RESOURCES;
}

static uint8_t no_such(struct command *cmd, const char *what, uint32_t number)
{
	violation(cmd->dev, "%s %u does not exist", what, number);
	return STATUS_BAD_RESOURCE;
}

static uint8_t run_dealloc_uar(struct command *cmd)
{
	uint32_t uar = get_be24(cmd->in + AT_NUMBER);

	for (unsigned i = 1; i < MAX_EQS; i++)
		if (cmd->dev->eqs[i] && cmd->dev->eqs[i]->uar == uar)
			return STATUS_BAD_RESOURCE;
	return uar_remove(cmd->dev, uar) ? STATUS_OK : no_such(cmd, "UAR", uar);
}

static uint8_t run_create_eq(struct command *cmd)
{
	uint8_t status;
	struct eq *eq = eq_create(cmd->dev, cmd, &status);

	if (eq)
		cmd->out[AT_EQ_NUMBER] = eq->number;
	return status;
}

static struct eq *named_eq(struct command *cmd)
{
	uint8_t number = cmd->in[AT_EQ_NUMBER];
	struct eq *eq = number < MAX_EQS ? cmd->dev->eqs[number] : NULL;

	if (!eq)
		no_such(cmd, "event queue", number);
	return eq;
}

static uint8_t run_destroy_eq(struct command *cmd)
{
	struct eq *eq = named_eq(cmd);

	if (!eq)
		return STATUS_BAD_RESOURCE;
	eq_destroy(cmd->dev, eq);
	return STATUS_OK;
}

static uint8_t run_query_eq(struct command *cmd)
{
	const struct eq *eq = named_eq(cmd);

	if (!eq)
		return STATUS_BAD_RESOURCE;
	eq_query(cmd->dev, eq, cmd->out);
	return STATUS_OK;
}

static uint8_t take_number(struct command *cmd, struct idset *set)
{
	uint32_t number = idset_take(set);

	put_be24(cmd->out + AT_NUMBER, number);
	return number ? STATUS_OK : STATUS_NO_RESOURCES;
}

static uint8_t give_number(struct command *cmd, struct idset *set, const char *what)
{
	uint32_t number = get_be24(cmd->in + AT_NUMBER);

	return idset_give(set, number) ? STATUS_OK : no_such(cmd, what, number);
}

static uint8_t run_alloc_pd(struct command *cmd)
{
	return take_number(cmd, &cmd->dev->pds);
}

static uint8_t run_dealloc_pd(struct command *cmd)
{
	return give_number(cmd, &cmd->dev->pds, "protection domain");
}

static uint8_t run_create_mkey(struct command *cmd)
{
	return take_number(cmd, &cmd->dev->mkeys);
}

static uint8_t run_destroy_mkey(struct command *cmd)
{
	return give_number(cmd, &cmd->dev->mkeys, "memory key");
}

static uint8_t run_create_umem(struct command *cmd)
{
	return take_number(cmd, &cmd->dev->umems);
}

static uint8_t run_destroy_umem(struct command *cmd)
{
	return give_number(cmd, &cmd->dev->umems, "umem");
}

static uint8_t run_alloc_domain(struct command *cmd)
{
	return take_number(cmd, &cmd->dev->domains);
}

static uint8_t run_dealloc_domain(struct command *cmd)
{
	return give_number(cmd, &cmd->dev->domains, "transport domain");
}

static uint8_t run_create_qp(struct command *cmd)
{
	return take_number(cmd, &cmd->dev->qps);
}

/* From one state to the next; which one does not matter to us. */
static uint8_t run_modify_qp(struct command *cmd)
{
	uint32_t number = get_be24(cmd->in + AT_NUMBER);

	return idset_has(&cmd->dev->qps, number) ? STATUS_OK : no_such(cmd, "queue pair", number);
}

static uint8_t run_destroy_qp(struct command *cmd)
{
	return give_number(cmd, &cmd->dev->qps, "queue pair");
}

static const struct opcode_entry opcodes[] = {
	{ 0x100, ENABLED, 16, run_query_caps },
	{ 0x102, ENABLED, 16, run_init },
	{ 0x103, ACTIVE, 16, run_teardown },
	{ 0x104, ALWAYS, 12, run_enable },
	{ 0x105, ALWAYS, 12, run_disable },
	{ 0x107, ENABLED, 16, pages_query },
	{ OPCODE_MANAGE_PAGES, ENABLED, 16, pages_manage },
	{ 0x109, ENABLED, 16, run_nothing }, /* SET_HCA_CAP */
	{ 0x10a, ENABLED, 16, run_query_issi },
	{ 0x10b, ENABLED, 16, run_set_issi },
	{ 0x200, ACTIVE, 0x110, run_create_mkey },
	{ 0x202, ACTIVE, 16, run_destroy_mkey },
	{ 0x301, ACTIVE, 0x110, run_create_eq },
	{ 0x302, ACTIVE, 16, run_destroy_eq },
	{ 0x303, ACTIVE, 16, run_query_eq },
	{ 0x400, ACTIVE, 0x50, cq_create },
	{ 0x401, ACTIVE, 16, cq_destroy },
	{ 0x500, ACTIVE, 0x100, run_create_qp },
	{ 0x501, ACTIVE, 16, run_destroy_qp },
	{ 0x502, ACTIVE, 0x100, run_modify_qp }, /* RST2INIT */
	{ 0x503, ACTIVE, 0x100, run_modify_qp }, /* INIT2RTR */
	{ 0x504, ACTIVE, 0x100, run_modify_qp }, /* RTR2RTS */
	{ 0x50d, ACTIVE, 0x110, port_datagram }, /* MAD_IFC */
	{ 0x755, ACTIVE, 16, run_nothing },      /* MODIFY_NIC_VPORT_CONTEXT */
	{ 0x762, ACTIVE, 16, port_vport },       /* QUERY_HCA_VPORT_CONTEXT */
	{ 0x800, ACTIVE, 16, run_alloc_pd },
	{ 0x801, ACTIVE, 16, run_dealloc_pd },
	{ 0x802, ACTIVE, 16, run_alloc_uar },
	{ 0x803, ACTIVE, 16, run_dealloc_uar },
	{ 0x805, ENABLED, 16, port_access_register }, /* ACCESS_REG */
	{ 0x816, ACTIVE, 16, run_alloc_domain },
	{ 0x817, ACTIVE, 16, run_dealloc_domain },
	{ 0xa08, ACTIVE, 0x30, run_create_umem },
	{ 0xa0a, ACTIVE, 16, run_destroy_umem },
};

static const struct opcode_entry *find_entry(uint16_t opcode)
{
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		if (opcodes[i].opcode == opcode)
			return &opcodes[i];
	return NULL;
}

static uint8_t injected_failure(struct device *dev, uint16_t opcode)
{
	for (unsigned i = 0; i < MAX_FAIL_RULES; i++) {
		struct fail_rule *rule = &dev->faults.fail[i];

		if (rule->left && (rule->opcode == ANY_OPCODE || rule->opcode == opcode)) {
			rule->left--;
			return rule->status;
		}
	}
	return STATUS_OK;
}

static uint8_t run_checked(struct command *cmd, const struct opcode_entry *entry)
{
	const struct device *dev = cmd->dev;

	if (!entry)
		return STATUS_BAD_OPCODE;
	if (cmd->in_size < entry->in_size)
		return STATUS_BAD_INPUT_SIZE;
	if ((entry->stage >= ENABLED && !dev->enabled) || (entry->stage == ACTIVE && !dev->active))
		return STATUS_BAD_STATE;
	return entry->run(cmd);
}

void opcode_execute(struct command *cmd)
{
	struct device *dev = cmd->dev;
	uint16_t opcode = get_be16(cmd->in);
	uint8_t status = injected_failure(dev, opcode);

	dev->stats.commands++;
	if (status)
		put_be32(cmd->out + 4, INJECTED_SYNDROME);
	else
		status = run_checked(cmd, find_entry(opcode));
	cmd->out[0] = status;
	if (opcode == OPCODE_MANAGE_PAGES && dev->active)
		page_answer(dev);
}

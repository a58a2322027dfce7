/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of the model: their names, how often each comes, and how they are written down. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "support/support.h"

enum {
	SLOTS = 3,
	MOST_OPS = 4096,
};

struct op {
	enum op_kind {
		OP_TURN,
		OP_BLOCK,
		OP_OPEN,
		OP_ATTACH,
		OP_DETACH,
		OP_CLOSE,
		OP_CLOSE_BY_LIBRARY,
		OP_LISTEN,
		OP_DEAF,
		OP_INTERVAL,
		OP_REF,
		OP_UNREF,
		OP_FAULT,
		OP_HEAL,
		OP_PAGES,
		OP_BURST,
		OP_FAIL,
		OP_LOSE,
		OP_SPURIOUS,
		OP_SYNDROME,
		OP_REMOVAL,
		OP_AER,
		OP_COMMANDS,
		OP_EQ_OPEN,
		OP_EQ_CLOSE,
		OP_PORT,
		OP_HEALTH,
		OP_GUARD,
		OP_WRECK,
	} kind;
	int slot;
	int arg;
};

static const struct op_type {
	const char *name;
	int weight;
	int most; /* arg is from 0 to this */
} op_types[] = {
	[OP_TURN] = { "turn", 60, 30 },
	[OP_BLOCK] = { "block", 4, 40 },
	[OP_OPEN] = { "open", 12, 1 },
	[OP_ATTACH] = { "attach", 24, 0 },
	[OP_DETACH] = { "detach", 3, 0 },
	[OP_CLOSE] = { "close", 1, 0 },
	[OP_CLOSE_BY_LIBRARY] = { "close-by-library", 1, 0 },
	[OP_LISTEN] = { "listen", 12, 20 },
	[OP_DEAF] = { "deaf", 1, 0 },
	[OP_INTERVAL] = { "interval", 6, 7 },
	[OP_REF] = { "ref", 2, 0 },
	[OP_UNREF] = { "unref", 2, 0 },
	[OP_FAULT] = { "fault", 3, 11 },
	[OP_HEAL] = { "heal", 3, 0 },
	[OP_PAGES] = { "pages", 16, 12 },
	[OP_BURST] = { "burst", 2, 12 },
	[OP_FAIL] = { "fail", 5, 5 },
	[OP_LOSE] = { "lose", 2, 2 },
	[OP_SPURIOUS] = { "spurious", 8, 0 },
	[OP_SYNDROME] = { "syndrome", 2, 3 },
	[OP_REMOVAL] = { "removal", 2, 0 },
	[OP_AER] = { "aer", 1, 0 },
	[OP_COMMANDS] = { "commands", 4, 40 },
	[OP_EQ_OPEN] = { "eq-open", 4, 0 },
	[OP_EQ_CLOSE] = { "eq-close", 2, 0 },
	[OP_PORT] = { "port", 4, 1 },
	[OP_HEALTH] = { "health", 3, 0 },
	[OP_GUARD] = { "guard", 2, 0 },
	[OP_WRECK] = { "wreck", 1, 0 },
};

#define OP_KINDS (int)(sizeof(op_types) / sizeof(op_types[0]))

struct ops {
	int count;
	struct op op[MOST_OPS];
};

static uint64_t ops_random(uint64_t *state, uint64_t bound)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 33) % bound;
}

static struct op ops_draw(uint64_t *state)
{
	int total = 0, kind = 0, draw;
	struct op op;

	for (int i = 0; i < OP_KINDS; i++)
		total += op_types[i].weight;
	draw = (int)ops_random(state, (uint64_t)total);
	while (draw >= op_types[kind].weight)
		draw -= op_types[kind++].weight;
	op.kind = (enum op_kind)kind;
	op.slot = (int)ops_random(state, SLOTS);
	op.arg = (int)ops_random(state, (uint64_t)op_types[kind].most + 1);
	return op;
}

/* The same seed gives the same operations. */
static void ops_generate(struct ops *ops, uint64_t seed, int count)
{
	uint64_t state = seed * 2654435761u + 1;

	ops->count = 0;
	for (int i = 0; i < SLOTS; i++) {
		ops->op[ops->count++] = (struct op){ OP_OPEN, i, i % 2 };
		ops->op[ops->count++] = (struct op){ OP_ATTACH, i, 0 };
		ops->op[ops->count++] = (struct op){ OP_LISTEN, i, 0 };
	}
	while (ops->count < count)
		ops->op[ops->count++] = ops_draw(&state);
}

static void ops_print(const struct ops *ops, FILE *file)
{
	for (int i = 0; i < ops->count; i++)
		fprintf(file, "%s %d %d\n", op_types[ops->op[i].kind].name, ops->op[i].slot,
			ops->op[i].arg);
}

static bool ops_parse(const char *line, struct op *op)
{
	char name[32];

	if (sscanf(line, "%31s %d %d", name, &op->slot, &op->arg) != 3 || op->slot < 0 ||
	    op->slot >= SLOTS)
		return false;
	for (int i = 0; i < OP_KINDS; i++) {
		if (!strcmp(op_types[i].name, name)) {
			op->kind = (enum op_kind)i;
			return true;
		}
	}
	return false;
}

static void ops_read(struct ops *ops, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[128];

	support_require(file != NULL, "cannot read %s", path);
	ops->count = 0;
	while (ops->count < MOST_OPS && fgets(line, sizeof(line), file))
		ops->count += ops_parse(line, &ops->op[ops->count]);
	fclose(file);
}

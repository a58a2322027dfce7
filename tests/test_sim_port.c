/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1 --port ib; valgrind */
/*
 * An InfiniBand port: down until it is told to come up, which is an event; what the commands say of
 * it; and the lines of the control language about events that are refused.
 */
#include "test_eq.h"

#include "test_sim.h"

#define PORT BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE)

enum {
	ACCESS_REG = 0x805,
	PAOS = 0x5006,
	PAOS_UP = 1,
	PAOS_DOWN = 2,
	MAD_IFC = 0x50d,
	PORT_INFO = 0x15,
	STATE_DOWN = 1,
	STATE_ACTIVE = 4,
	QUERY_VPORT = 0x762,
	CREATE_QP = 0x500,
	DESTROY_QP = 0x501,
	BAD_RESOURCE = 5,
};

static struct test_loop loop;

static void command(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
	ck_assert_int_eq(mlx5dv_devx_general_cmd(loop.ctx, in, in_size, out, out_size), 0);
}

/* Sets the administrative state, if there is one, and returns the operational. */
static int paos(int admin)
{
	uint8_t in[32] = { 0 }, out[32] = { 0 };

	put_be16(in, ACCESS_REG);
	put_be16(in + 10, PAOS);
	in[17] = 1;
	in[18] = (uint8_t)admin;
	in[20] = admin ? 0x80 : 0;
	command(in, sizeof(in), out, sizeof(out));
	ck_assert_uint_eq(out[17], 1);
	return out[19];
}

static int state_by_datagram(void)
{
	uint8_t in[272] = { 0 }, out[272] = { 0 };

	put_be16(in, MAD_IFC);
	put_be16(in + 16 + 16, PORT_INFO);
	command(in, sizeof(in), out, sizeof(out));
	return out[16 + 96] & 0xf;
}

static int state_of_vport(void)
{
	uint8_t in[16] = { 0 }, out[16 + 0x200] = { 0 };

	put_be16(in, QUERY_VPORT);
	command(in, sizeof(in), out, sizeof(out));
	return out[16 + 0x23] >> 4;
}

static void expect_state(bool up)
{
	ck_assert_int_eq(paos(0), up ? PAOS_UP : PAOS_DOWN);
	ck_assert_int_eq(state_by_datagram(), up ? STATE_ACTIVE : STATE_DOWN);
	ck_assert_int_eq(state_of_vport(), up ? STATE_ACTIVE : STATE_DOWN);
}

static uint8_t states[8];
static int count;

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	(void)eq;
	(void)arg;
	ck_assert_int_lt(count, (int)sizeof(states));
	states[count++] = event->sub_type;
}

START_TEST(port_comes_up)
{
	static const uint8_t expected[] = { MLX5VFIO_PORT_UP, MLX5VFIO_PORT_DOWN,
					    MLX5VFIO_PORT_UP };

	count = 0;
	test_loop_start(&loop, LOOP_POLL, 0);
	test_eq_open(&loop, 4, 0, PORT, on_event, NULL);
	expect_state(false);
	ck_assert_int_eq(paos(PAOS_UP), PAOS_UP);
	ck_assert_int_eq(paos(PAOS_UP), PAOS_UP); /* no change, no event */
	expect_state(true);
	support_sim("port 0 down");
	expect_state(false);
	support_sim("port 0 up 1");
	test_turn_until(&loop, &count, 3);
	test_turn_for(&loop, TEST_SILENCE);
	expect_state(true);
	ck_assert_int_eq(count, 3);
	ck_assert_mem_eq(states, expected, sizeof(expected));
	test_loop_finish(&loop, 0, 0);

	/* a reset takes it down */
	test_loop_start(&loop, LOOP_POLL, 0);
	expect_state(false);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

START_TEST(queue_pairs)
{
	uint8_t in[0x110] = { 0 }, out[16] = { 0 }, destroy[16] = { 0 };

	test_loop_start(&loop, LOOP_POLL, 0);
	put_be16(in, CREATE_QP);
	command(in, sizeof(in), out, sizeof(out));
	ck_assert_uint_eq(out[0], 0);
	memcpy(destroy + 8, out + 8, 4);
	for (uint16_t opcode = 0x502; opcode <= 0x504; opcode++) {
		put_be16(in, opcode);
		memcpy(in + 8, destroy + 8, 4);
		command(in, sizeof(in), out, sizeof(out));
		ck_assert_uint_eq(out[0], 0);
	}
	put_be16(destroy, DESTROY_QP);
	command(destroy, sizeof(destroy), out, sizeof(out));
	ck_assert_uint_eq(out[0], 0);
	mlx5dv_devx_general_cmd(loop.ctx, destroy, sizeof(destroy), out, sizeof(out));
	ck_assert_uint_eq(out[0], BAD_RESOURCE);
	test_loop_finish(&loop, 0, 1);
}
END_TEST

START_TEST(refused_lines)
{
	static const struct {
		const char *line;
		int error;
	} refused[] = {
		{ "port 0 up x", -EINVAL },       { "port 0 up 3 often", -EINVAL },
		{ "port 0 up 3 every", -EINVAL }, { "events 0 0x0a 1", -EINVAL },
		{ "events 0 0x0b 1", -EINVAL },   { "events 0 0 1", -EINVAL },
		{ "events 0 0x40 1", -EINVAL },   { "events 0 0x22", -EINVAL },
		{ "events 0 0x22 1", -ENETDOWN }, { "port 0 up 1", -ENETDOWN },
		{ "cq-event 0 1", -ENETDOWN },    { "cq-event 0 0x1000000", -EINVAL },
		{ "cq-error 0 1", -ENETDOWN },    { "cq-error 0 1 256", -EINVAL },
		{ "qp-event 0 1", -ENETDOWN },    { "qp-event 0 1 64", -EINVAL },
		{ "overrun 0 5", -ENETDOWN },     { "overrun 0 80", -EINVAL },
	};
	char reply[512];

	test_loop_start(&loop, LOOP_POLL, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		int error = mlx5vfio_sim_control(refused[i].line, reply, sizeof(reply));

		ck_assert_msg(error == refused[i].error, "%s: %d", refused[i].line, error);
		ck_assert(reply[0]);
	}
	test_loop_finish(&loop, 0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim port");
	TCase *tcase = tcase_create("port");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, test_clean_up);
	tcase_add_test(tcase, port_comes_up);
	tcase_add_test(tcase, queue_pairs);
	tcase_add_test(tcase, refused_lines);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

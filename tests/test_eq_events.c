/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; tsan valgrind */
/*
 * What comes out of an event queue, in a loop of libuv's and in one that is nothing but poll():
 * port changes, completions, errors of queues, types that the library does not know, and nothing
 * when there is nothing.
 */
#include <endian.h>

#include "test_eq.h"

#define MAX_EVENTS 128
#define ODD_TYPE   0x3e

struct log {
	struct mlx5vfio_event events[MAX_EVENTS];
	int count;
};

static struct test_loop loop;
static struct log seen;

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	struct log *log = arg;

	ck_assert_ptr_eq(mlx5vfio_eq_device(eq), loop.dev);
	ck_assert_int_lt(log->count, MAX_EVENTS);
	log->events[log->count++] = *event;
}

static struct mlx5vfio_eq *start(int kind, uint64_t events)
{
	seen.count = 0;
	test_loop_start(&loop, (enum test_loop_kind)kind, 0);
	return test_eq_open(&loop, 0, 0, events, on_event, &seen);
}

static void finish(struct mlx5vfio_eq *eq)
{
	int count = seen.count;

	test_turn_for(&loop, TEST_SILENCE);
	ck_assert_int_eq(seen.count, count);
	mlx5vfio_eq_close(eq);
	test_loop_finish(&loop, 0, 0);
}

static void expect_port(int i, uint8_t state)
{
	ck_assert_int_eq(seen.events[i].type, MLX5VFIO_EVENT_PORT_STATE_CHANGE);
	ck_assert_uint_eq(seen.events[i].sub_type, state);
	ck_assert_uint_eq(seen.events[i].port, 1);
}

START_TEST(port_changes_in_order)
{
	struct mlx5vfio_eq *eq = start(_i, BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE));
	int i;

	support_sim("port 0 down");
	test_turn_until(&loop, &seen.count, 1);
	expect_port(0, MLX5VFIO_PORT_DOWN);
	for (i = 1; i < 11; i++)
		support_sim("port 0 %s", i % 2 ? "up" : "down");
	test_turn_until(&loop, &seen.count, 11);
	support_sim("port 0 up 10 every 1ms");
	test_turn_until(&loop, &seen.count, 21);
	for (i = 0; i < 21; i++)
		expect_port(i, i % 2 ? MLX5VFIO_PORT_UP : MLX5VFIO_PORT_DOWN);
	finish(eq);
}
END_TEST

/* CREATE_CQ with the queue's number in the CQ context; the CQ's memory is nobody's business here. */
static struct mlx5dv_devx_obj *create_cq(const struct mlx5vfio_eq *eq, uint32_t *number)
{
	enum { CREATE_CQ = 0x400, IN_SIZE = 0x110, AT_EQ_NUMBER = 0x10 + 0x17, AT_CQ_NUMBER = 8 };
	uint8_t in[IN_SIZE] = { CREATE_CQ >> 8, CREATE_CQ & 0xff }, out[16] = { 0 };
	struct mlx5dv_devx_obj *cq;

	in[AT_EQ_NUMBER] = (uint8_t)mlx5vfio_eq_number(eq);
	cq = mlx5dv_devx_obj_create(loop.ctx, in, sizeof(in), out, sizeof(out));
	ck_assert_msg(cq != NULL, "no CQ: errno %d", errno);
	memcpy(number, out + AT_CQ_NUMBER, sizeof(*number));
	*number = be32toh(*number) & 0xffffff;
	return cq;
}

START_TEST(completions)
{
	struct mlx5vfio_eq *eq = start(_i, 0), *other;
	struct mlx5dv_devx_obj *cqs[2];
	struct log elsewhere = { .count = 0 };
	uint32_t numbers[2];
	int i;

	other = test_eq_open(&loop, 4, 0, 0, on_event, &elsewhere);
	ck_assert_uint_ne(mlx5vfio_eq_number(eq), mlx5vfio_eq_number(other));
	cqs[0] = create_cq(eq, &numbers[0]);
	cqs[1] = create_cq(other, &numbers[1]);
	support_sim("cq-event 0 %u 3", numbers[0]);
	support_sim("cq-event 0 %u 2", numbers[1]);
	test_turn_until(&loop, &seen.count, 3);
	test_turn_until(&loop, &elsewhere.count, 2);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(seen.events[i].type, MLX5VFIO_EVENT_COMPLETION);
		ck_assert_uint_eq(seen.events[i].cqn, numbers[0]);
	}
	ck_assert_uint_eq(elsewhere.events[1].cqn, numbers[1]);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(mlx5dv_devx_obj_destroy(cqs[i]), 0);
	mlx5vfio_eq_close(other);
	ck_assert_int_eq(elsewhere.count, 2);
	finish(eq);
}
END_TEST

/* A rule of the hardware that the simulator minds: first the CQ, then its queue. */
START_TEST(queue_closed_before_its_cq)
{
	struct mlx5vfio_eq *eq = start(_i, 0);
	struct mlx5dv_devx_obj *cq;
	uint32_t number;

	cq = create_cq(eq, &number);
	mlx5vfio_eq_close(eq);
	ck_assert_uint_eq(support_stats(0).violations, 1);
	ck_assert_int_eq(mlx5dv_devx_obj_destroy(cq), 0);
	test_loop_finish(&loop, 0, 1);
}
END_TEST

START_TEST(errors_of_queues)
{
	static const enum mlx5vfio_event_type types[] = {
		MLX5VFIO_EVENT_WQ_CATASTROPHIC_ERROR, MLX5VFIO_EVENT_WQ_INVALID_REQUEST_ERROR,
		MLX5VFIO_EVENT_WQ_ACCESS_ERROR,       MLX5VFIO_EVENT_SRQ_CATASTROPHIC_ERROR,
		MLX5VFIO_EVENT_LAST_WQE_REACHED,      MLX5VFIO_EVENT_SRQ_LIMIT,
	};
	const int n = sizeof(types) / sizeof(types[0]);
	uint64_t events = BIT(MLX5VFIO_EVENT_CQ_ERROR);
	struct mlx5vfio_eq *eq;
	int i;

	for (i = 0; i < n; i++)
		events |= BIT(types[i]);
	eq = start(_i, events);
	support_sim("cq-error 0 0x123456 2");
	for (i = 0; i < n; i++)
		support_sim("qp-event 0 0x%x 0x%x", 0x654321 + i, types[i]);
	test_turn_until(&loop, &seen.count, 1 + n);
	ck_assert_int_eq(seen.events[0].type, MLX5VFIO_EVENT_CQ_ERROR);
	ck_assert_uint_eq(seen.events[0].cqn, 0x123456);
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(seen.events[1 + i].type, types[i]);
		ck_assert_uint_eq(seen.events[1 + i].qpn, 0x654321u + (uint32_t)i);
		ck_assert_uint_eq(seen.events[1 + i].srqn, 0x654321u + (uint32_t)i);
	}
	finish(eq);
}
END_TEST

START_TEST(unknown_types_are_raw)
{
	struct mlx5vfio_eq *eq = start(_i, BIT(ODD_TYPE));
	int i;

	support_sim("events 0 0x%x 3", ODD_TYPE);
	test_turn_until(&loop, &seen.count, 3);
	support_sim("qp-event 0 0x77 0x%x", ODD_TYPE);
	test_turn_until(&loop, &seen.count, 4);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq((int)seen.events[i].type, ODD_TYPE);
		ck_assert_uint_eq(seen.events[i].raw[1], (uint32_t)i);
		ck_assert_uint_eq(seen.events[i].raw[6], 0);
	}
	ck_assert_uint_eq(seen.events[3].raw[6], 0x77);
	ck_assert_str_ne(mlx5vfio_event_str(seen.events[0].type), "");
	finish(eq);
}
END_TEST

/* Only what was asked for, and each queue for itself. */
START_TEST(mask)
{
	struct mlx5vfio_eq *eq = start(_i, BIT(MLX5VFIO_EVENT_CQ_ERROR)), *port;
	struct log elsewhere = { .count = 0 };

	port = test_eq_open(&loop, 4, 0, BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE), on_event,
			    &elsewhere);
	support_sim("port 0 up");
	test_turn_until(&loop, &elsewhere.count, 1);
	ck_assert_int_eq(seen.count, 0);
	mlx5vfio_eq_close(port);
	support_sim("port 0 down");
	ck_assert_int_eq(elsewhere.count, 1);
	finish(eq);
}
END_TEST

/* An interrupt for nothing on every vector. */
START_TEST(interrupts_that_lie)
{
	struct mlx5vfio_eq *eq = start(_i, BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE));
	int vector;

	for (vector = 0; vector < 64; vector++)
		support_sim("spurious 0 %d", vector);
	test_turn_for(&loop, TEST_SILENCE);
	ck_assert_int_eq(seen.count, 0);
	support_sim("port 0 up");
	support_sim("spurious 0 1");
	test_turn_until(&loop, &seen.count, 1);
	support_sim("port 0 down");
	test_turn_until(&loop, &seen.count, 2);
	expect_port(1, MLX5VFIO_PORT_DOWN);
	finish(eq);
}
END_TEST

/* The tick is the safety net. */
START_TEST(interrupts_that_get_lost)
{
	struct mlx5vfio_eq *eq = start(_i, BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE));

	mlx5vfio_set_interval(loop.dev, 20);
	support_sim("lose-interrupt 0 1000");
	support_sim("port 0 up");
	test_turn_until(&loop, &seen.count, 1);
	support_sim("port 0 down");
	test_turn_until(&loop, &seen.count, 2);
	expect_port(1, MLX5VFIO_PORT_DOWN);
	support_sim("lose-interrupt 0 0");
	finish(eq);
}
END_TEST

/* More of them than a budget: one tick finds the first, and turns bring the rest. */
START_TEST(lost_with_many_behind)
{
	struct mlx5vfio_stats stats;
	struct mlx5vfio_eq *eq;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	seen.count = 0;
	eq = test_eq_open(&loop, 8, 2, BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE), on_event, &seen);
	mlx5vfio_set_interval(loop.dev, 100);
	support_sim("lose-interrupt 0 1000");
	support_sim("port 0 up 100");
	test_turn_until(&loop, &seen.count, 100);
	mlx5vfio_get_stats(loop.dev, &stats, sizeof(stats));
	ck_assert_uint_le(stats.ticks, 20);
	support_sim("lose-interrupt 0 0");
	finish(eq);
}
END_TEST

START_TEST(names)
{
	int type, known = 0;

	for (type = 0; type < 0x200; type++) {
		const char *name = mlx5vfio_event_str((enum mlx5vfio_event_type)type);

		ck_assert_ptr_nonnull(name);
		ck_assert_str_ne(name, "");
		known += !strstr(name, "unknown");
	}
	ck_assert_int_eq(known, 35);
	ck_assert_str_eq(mlx5vfio_event_str(MLX5VFIO_EVENT_PORT_STATE_CHANGE), "port state change");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("eq events");
	TCase *tcase = tcase_create("events");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, test_clean_up);
	tcase_add_loop_test(tcase, port_changes_in_order, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, completions, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, queue_closed_before_its_cq, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, errors_of_queues, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, unknown_types_are_raw, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, mask, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, interrupts_that_lie, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, interrupts_that_get_lost, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, lost_with_many_behind, 0, LOOP_KINDS);
	tcase_add_test(tcase, names);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

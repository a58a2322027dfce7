/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 2; valgrind */
/*
 * The simulator keeps the rules of event queues. Queues of our own, driven by hand; port events are
 * what is put into them.
 */
#include <stdlib.h>

#include "test_sim.h"

enum {
	ENTRY_SIZE = 64,
	AT_TYPE = 1,
	AT_SUB_TYPE = 3,
	AT_PORT = 40,
	AT_OWNER = 63,
	EVENT_PORT = 9,
	EVENT_STALL = 0x1b, /* one that never comes */
	PORT_UP = 4,
	PORT_DOWN = 1,
	ARM = 0x40,
	UPDATE = 0x48,
	SILENCE = 30, /* ms, longer than the simulator takes to repair a lost arm */
	SYNDROME_OVERRUN = 0x0c,
};

struct queue {
	struct mlx5dv_devx_msi_vector *msi;
	struct mlx5dv_devx_eq *eq;
	uint8_t *entries, *page;
	uint32_t number, count, consumer;
};

static struct ibv_context *ctx, *neighbour;
static uint8_t *bar;
static uint32_t shared_page, own_page;

/* A UAR page that no queue of libmlx5 rings: only there the rules hold to the letter. */
static uint32_t alloc_page(void)
{
	uint8_t in[16] = { 0 }, out[16] = { 0 };

	put_be16(in, 0x802);
	ck_assert_int_eq(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), 0);
	return get_be32(out + 8) & 0xffffff;
}

static void free_page(uint32_t page)
{
	uint8_t in[16] = { 0 }, out[16] = { 0 };

	put_be16(in, 0x803);
	put_be32(in + 8, page);
	ck_assert_int_eq(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), 0);
}

static void set_up(void)
{
	ctx = support_open(0);
	bar = sim_bar_of(ctx, &shared_page);
	own_page = alloc_page();
}

static void tear_down(uint64_t violations)
{
	free_page(own_page);
	sim_close(&ctx, 0, violations);
}

static void clean_up(void)
{
	sim_close_rest(&ctx);
	sim_close_rest(&neighbour);
}

static struct mlx5dv_devx_eq *create_eq(uint32_t page, unsigned log_count, unsigned event,
					unsigned vector, uint32_t *number)
{
	uint8_t in[0x110] = { 0 }, out[16] = { 0 };
	struct mlx5dv_devx_eq *eq;

	put_be16(in, 0x301);
	put_be32(in + 0x1c, (uint32_t)log_count << 24 | page);
	in[0x27] = (uint8_t)vector;
	put_be64(in + 0x58, UINT64_C(1) << event);
	eq = mlx5dv_devx_create_eq(ctx, in, sizeof(in), out, sizeof(out));
	*number = out[11];
	return eq;
}

static void ring(const struct queue *queue, size_t offset)
{
	sim_write(queue->page, offset, queue->number << 24 | (queue->consumer & 0xffffff));
}

static struct queue queue_open(uint32_t page, unsigned log_count, unsigned event)
{
	struct queue queue = { .msi = mlx5dv_devx_alloc_msi_vector(ctx),
			       .page = bar + (size_t)page * SIM_PAGE,
			       .count = UINT32_C(1) << log_count };

	ck_assert_ptr_nonnull(queue.msi);
	ck_assert_int_ge(queue.msi->vector, 1);
	queue.eq = create_eq(page, log_count, event, (unsigned)queue.msi->vector, &queue.number);
	ck_assert_ptr_nonnull(queue.eq);
	queue.entries = queue.eq->vaddr;
	for (uint32_t i = 0; i < queue.count; i++)
		queue.entries[i * ENTRY_SIZE + AT_OWNER] = 1;
	return queue;
}

static void queue_close(struct queue *queue)
{
	ck_assert_int_eq(mlx5dv_devx_destroy_eq(queue->eq), 0);
	ck_assert_int_eq(mlx5dv_devx_free_msi_vector(queue->msi), 0);
	free(queue->entries); /* libmlx5 44 forgets it */
}

/* The next entry, by the rule that libmlx5 and the kernel use; NULL when there is none. */
static uint8_t *next_entry(const struct queue *queue)
{
	uint32_t at = queue->consumer & (queue->count - 1);
	uint8_t *entry = queue->entries + at * ENTRY_SIZE;
	uint8_t owner = __atomic_load_n(entry + AT_OWNER, __ATOMIC_ACQUIRE);

	return (owner & 1) == ((queue->consumer & queue->count) != 0) ? entry : NULL;
}

static void expect_port(struct queue *queue, uint8_t sub_type)
{
	const uint8_t *entry = next_entry(queue);

	ck_assert_ptr_nonnull(entry);
	ck_assert_uint_eq(entry[AT_TYPE], EVENT_PORT);
	ck_assert_uint_eq(entry[AT_SUB_TYPE], sub_type);
	ck_assert_uint_eq(entry[AT_PORT] >> 4, 1);
	queue->consumer++;
}

/* How many interrupts have come since the last look. */
static uint64_t interrupts(const struct queue *queue, int timeout_ms)
{
	uint64_t count = 0;

	support_stats(0); /* the simulator looks at its doorbells */
	if (!sim_readable(queue->msi->fd, timeout_ms))
		return 0;
	ck_assert_int_eq(read(queue->msi->fd, &count, sizeof(count)), sizeof(count));
	return count;
}

START_TEST(interrupt_only_when_armed)
{
	struct queue queue;

	set_up();
	queue = queue_open(own_page, 3, EVENT_PORT);
	support_sim("port 0 up");
	ck_assert_uint_eq(interrupts(&queue, SILENCE), 0);
	ring(&queue, ARM); /* finds the entry */
	ck_assert_uint_eq(interrupts(&queue, SIM_PATIENCE), 1);
	support_sim("port 0 down"); /* the interrupt has disarmed it */
	ck_assert_uint_eq(interrupts(&queue, SILENCE), 0);
	expect_port(&queue, PORT_UP);
	expect_port(&queue, PORT_DOWN);
	ck_assert_ptr_null(next_entry(&queue));
	ring(&queue, UPDATE);
	ck_assert_uint_eq(interrupts(&queue, SILENCE), 0);
	ring(&queue, ARM); /* finds nothing */
	ck_assert_uint_eq(interrupts(&queue, SILENCE), 0);
	support_sim("port 0 up");
	ck_assert_uint_eq(interrupts(&queue, SIM_PATIENCE), 1);
	queue_close(&queue);
	tear_down(0);
}
END_TEST

START_TEST(arming_with_part_consumed_fires)
{
	struct queue queue;

	set_up();
	queue = queue_open(own_page, 3, EVENT_PORT);
	for (int i = 0; i < 3; i++)
		support_sim("port 0 up");
	expect_port(&queue, PORT_UP);
	ring(&queue, ARM);
	ck_assert_uint_eq(interrupts(&queue, SIM_PATIENCE), 1);
	ring(&queue, ARM); /* nothing consumed since: again at once */
	ck_assert_uint_eq(interrupts(&queue, SIM_PATIENCE), 1);
	queue_close(&queue);
	tear_down(0);
}
END_TEST

/* Each round fills the queue to the last entry; odd parts make the index meet the end anywhere. */
START_TEST(owner_bit_and_index_wrap)
{
	struct queue queue;
	uint64_t before;
	uint32_t produced = 0;

	set_up();
	queue = queue_open(own_page, 2, EVENT_PORT);
	before = support_stats(0).consumed;
	for (int round = 0; round < support_rounds(60); round++) {
		uint32_t part = (uint32_t)round % 4 + 1;

		for (uint32_t i = 0; i < part; i++)
			support_sim("port 0 %s", produced++ & 1 ? "up" : "down");
		for (uint32_t i = 0; i < part; i++)
			expect_port(&queue, queue.consumer & 1 ? PORT_UP : PORT_DOWN);
		ck_assert_ptr_null(next_entry(&queue));
		ring(&queue, round & 1 ? ARM : UPDATE);
		ck_assert_uint_eq(support_stats(0).consumed - before, queue.consumer);
	}
	queue_close(&queue);
	tear_down(0);
}
END_TEST

START_TEST(only_who_asked_gets_events)
{
	struct queue port, other;
	uint64_t before;

	set_up();
	port = queue_open(own_page, 3, EVENT_PORT);
	other = queue_open(shared_page, 3, EVENT_STALL);
	ring(&port, ARM);
	support_stats(0);
	ring(&other, ARM);
	before = support_stats(0).eqes;
	support_sim("port 0 up");
	ck_assert_uint_eq(support_stats(0).eqes, before + 1);
	ck_assert_uint_eq(interrupts(&port, SIM_PATIENCE), 1);
	ck_assert_uint_eq(interrupts(&other, SILENCE), 0);
	expect_port(&port, PORT_UP);
	ck_assert_ptr_null(next_entry(&other));
	queue_close(&other);
	queue_close(&port);
	tear_down(0);
}
END_TEST

/* Every queue that asked gets its own copy, and not the device beside it. */
START_TEST(all_who_asked_get_events)
{
	struct queue one, two;
	uint64_t before;

	set_up();
	neighbour = support_open(1);
	before = support_stats(1).eqes;
	one = queue_open(own_page, 3, EVENT_PORT);
	two = queue_open(own_page, 3, EVENT_PORT);
	ck_assert_uint_ne(one.number, two.number);
	ck_assert_int_ne(one.msi->vector, two.msi->vector);
	support_sim("port 0 down");
	expect_port(&one, PORT_DOWN);
	expect_port(&two, PORT_DOWN);
	ck_assert_uint_eq(support_stats(1).eqes, before);
	queue_close(&one);
	queue_close(&two);
	tear_down(0);
	sim_close(&neighbour, 1, 0);
}
END_TEST

/*
 * Three queues ring one register, libmlx5's own too, so that one arm can overwrite another before
 * the simulator sees it. Nobody may get stuck; on such a page an interrupt may come twice.
 */
START_TEST(queues_share_a_page)
{
	struct queue one, two;

	set_up();
	one = queue_open(shared_page, 3, EVENT_PORT);
	two = queue_open(shared_page, 3, EVENT_PORT);
	for (int round = 0; round < support_rounds(100); round++) {
		struct ibv_pd *pd;

		ring(&one, ARM);
		ring(&two, ARM);
		pd = ibv_alloc_pd(ctx);
		ck_assert_ptr_nonnull(pd);
		support_sim("port 0 up");
		ck_assert_uint_ge(interrupts(&one, SIM_PATIENCE), 1);
		ck_assert_uint_ge(interrupts(&two, SIM_PATIENCE), 1);
		expect_port(&one, PORT_UP);
		expect_port(&two, PORT_UP);
		ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	}
	ring(&one, UPDATE);
	support_stats(0);
	ring(&two, UPDATE);
	queue_close(&one);
	queue_close(&two);
	tear_down(0);
}
END_TEST

/* One entry more than the queue holds: told, and the queue is dead. */
START_TEST(full_queue_is_overrun)
{
	struct queue queue;

	set_up();
	queue = queue_open(own_page, 2, EVENT_PORT);
	for (uint32_t i = 0; i < queue.count; i++)
		support_sim("port 0 up");
	ck_assert_uint_eq(sim_violations(0), 0);
	support_sim("port 0 down");
	ck_assert_uint_eq(sim_violations(0), 1);
	for (uint32_t i = 0; i < queue.count; i++)
		expect_port(&queue, PORT_UP); /* the old ones are still there */
	ck_assert_ptr_null(next_entry(&queue));
	ring(&queue, ARM);
	support_sim("port 0 up");
	ck_assert_uint_eq(interrupts(&queue, SILENCE), 0);
	ck_assert_ptr_null(next_entry(&queue));
	queue_close(&queue);
	tear_down(1);
}
END_TEST

/* On a page that others ring too, an overrun is certain as long as nobody else has rung. */
START_TEST(full_queue_on_shared_page)
{
	struct queue queue;

	set_up();
	queue = queue_open(shared_page, 2, EVENT_PORT);
	support_stats(0); /* libmlx5's doorbell is taken */
	ring(&queue, UPDATE);
	for (uint32_t i = 0; i < queue.count; i++)
		support_sim("port 0 up");
	ck_assert_uint_eq(sim_violations(0), 0);
	support_sim("port 0 down");
	ck_assert_uint_eq(sim_violations(0), 1);
	queue_close(&queue);
	tear_down(1);
}
END_TEST

START_TEST(overrun_on_demand)
{
	set_up();
	support_sim("overrun 0");
	ck_assert_uint_eq(sim_violations(0), 1);
	ck_assert_uint_eq(sim_read(bar, SIM_REG_SYNDROME) >> 16 & 0xff, SYNDROME_OVERRUN);
	/* libmlx5's own queue is dead, and with it every command but those of the close. */
	sim_close(&ctx, 0, 1);
}
END_TEST

START_TEST(doorbell_of_nobody)
{
	struct queue queue;

	set_up();
	queue = queue_open(own_page, 3, EVENT_PORT);
	sim_write(queue.page, ARM, UINT32_C(60) << 24);
	ck_assert_uint_eq(sim_violations(0), 1);
	sim_write(queue.page, UPDATE, UINT32_C(200) << 24);
	ck_assert_uint_eq(sim_violations(0), 2);
	queue_close(&queue);
	ring(&queue, ARM); /* once it was one */
	ck_assert_uint_eq(sim_violations(0), 3);
	tear_down(3);
}
END_TEST

START_TEST(consumer_ahead_of_producer)
{
	struct queue queue;
	uint64_t before;

	set_up();
	queue = queue_open(own_page, 3, EVENT_PORT);
	support_sim("port 0 up");
	before = support_stats(0).consumed;
	queue.consumer = 2;
	ring(&queue, UPDATE);
	ck_assert_uint_eq(sim_violations(0), 1);
	ring(&queue, ARM);
	ck_assert_uint_eq(sim_violations(0), 2);
	ck_assert_uint_eq(support_stats(0).consumed, before);
	queue.consumer = 1;
	ring(&queue, UPDATE);
	ck_assert_uint_eq(support_stats(0).consumed, before + 1);
	queue.consumer = 0; /* an arm that goes back */
	ring(&queue, ARM);
	ck_assert_uint_eq(sim_violations(0), 3);
	queue_close(&queue);
	tear_down(3);
}
END_TEST

START_TEST(impossible_queues)
{
	uint32_t number;

	set_up();
	ck_assert_ptr_null(create_eq(own_page + 1, 3, EVENT_PORT, 1, &number)); /* no such page */
	ck_assert_int_eq(errno, EREMOTEIO);
	ck_assert_ptr_null(create_eq(own_page, 3, EVENT_PORT, 64, &number)); /* no such vector */
	ck_assert_int_eq(errno, EREMOTEIO);
	ck_assert_ptr_null(create_eq(own_page, 21, EVENT_PORT, 1, &number)); /* too large */
	ck_assert_int_eq(errno, EREMOTEIO);
	ck_assert_ptr_null(create_eq(own_page, 3, EVENT_PORT, 0, &number)); /* libmlx5's own */
	ck_assert_int_eq(errno, EINVAL);
	tear_down(0);
}
END_TEST

/* Vectors 1 to 63, each with an interrupt of its own; then there is none left. */
START_TEST(every_vector)
{
	struct queue queues[8];
	struct mlx5dv_devx_msi_vector *vectors[64] = { NULL };
	int count = 0;

	set_up();
	for (int i = 0; i < 8; i++)
		queues[i] = queue_open(own_page, 3, EVENT_PORT);
	while ((vectors[count] = mlx5dv_devx_alloc_msi_vector(ctx)))
		count++;
	ck_assert_int_eq(errno, ENOSPC);
	ck_assert_int_eq(count, 63 - 8);
	for (int i = 0; i < 8; i++) {
		ring(&queues[i], ARM);
		support_stats(0);
	}
	support_sim("port 0 up");
	for (int i = 0; i < 8; i++)
		ck_assert_uint_ge(interrupts(&queues[i], SIM_PATIENCE), 1);
	support_sim("spurious 0 %d", vectors[count - 1]->vector);
	ck_assert(sim_readable(vectors[count - 1]->fd, SIM_PATIENCE));
	while (count--)
		ck_assert_int_eq(mlx5dv_devx_free_msi_vector(vectors[count]), 0);
	for (int i = 0; i < 8; i++)
		queue_close(&queues[i]);
	tear_down(0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim rules");
	TCase *tcase = tcase_create("event queues");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, clean_up);
	tcase_add_test(tcase, interrupt_only_when_armed);
	tcase_add_test(tcase, arming_with_part_consumed_fires);
	tcase_add_test(tcase, owner_bit_and_index_wrap);
	tcase_add_test(tcase, only_who_asked_gets_events);
	tcase_add_test(tcase, all_who_asked_get_events);
	tcase_add_test(tcase, queues_share_a_page);
	tcase_add_test(tcase, full_queue_is_overrun);
	tcase_add_test(tcase, full_queue_on_shared_page);
	tcase_add_test(tcase, overrun_on_demand);
	tcase_add_test(tcase, doorbell_of_nobody);
	tcase_add_test(tcase, consumer_ahead_of_producer);
	tcase_add_test(tcase, impossible_queues);
	tcase_add_test(tcase, every_vector);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

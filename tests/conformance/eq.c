/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues ride their device's loop, whichever it is. */
#include <unistd.h>

#include <mlx5vfio/eq.h>

#include "scenarios.h"
#include "subject.h"

#define BIT(type) (UINT64_C(1) << (type))
#define BUDGET    16
#define CHANGES   21
#define PARTS     50
#define NAP_AFTER 500 /* a slow consumer: the queue is full most of the time */

struct queue {
	struct subject *subject;
	struct mlx5vfio_eq *eq;
	void (*act)(struct queue *queue); /* what the handler does besides counting */
	uint64_t count, wanted;
	bool slow;
};

/* By if: Check writes a line for each assertion that holds, a million times most of the storm's time. */
static void count_event(struct queue *queue, const struct mlx5vfio_eq *eq)
{
	if (eq != queue->eq)
		ck_abort_msg("an event of another queue");
	queue->count++;
	if (queue->slow && queue->count % NAP_AFTER == 0)
		stage_block(1);
	if (queue->act)
		queue->act(queue);
}

/* Down and up by turns, down first. */
static void on_port(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	struct queue *queue = arg;

	ck_assert_int_eq(event->type, MLX5VFIO_EVENT_PORT_STATE_CHANGE);
	ck_assert_uint_eq(event->port, 1);
	ck_assert_uint_eq(event->sub_type,
			  queue->count % 2 ? MLX5VFIO_PORT_UP : MLX5VFIO_PORT_DOWN);
	count_event(queue, eq);
}

/* The simulator numbers them in the second word. */
static void on_numbered(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	struct queue *queue = arg;

	if (event->type != MLX5VFIO_EVENT_GENERAL || event->raw[1] != (uint32_t)queue->count)
		ck_abort_msg("event 0x%x number %u instead of %llu", event->type, event->raw[1],
			     (unsigned long long)queue->count);
	count_event(queue, eq);
}

static void queue_open(struct queue *queue, struct subject *subject, enum mlx5vfio_event_type type,
		       unsigned budget, mlx5vfio_event_fn *on_event)
{
	const struct mlx5vfio_eq_attr attr = { .budget = budget, .events = BIT(type) };

	*queue = (struct queue){ .subject = subject };
	queue->eq = mlx5vfio_eq_open(subject->dev, &attr, on_event, queue);
	ck_assert_ptr_nonnull(queue->eq);
}

static bool has_wanted(void *arg)
{
	const struct queue *queue = arg;

	return queue->count >= queue->wanted;
}

static void queue_until(struct queue *queue, uint64_t wanted)
{
	queue->wanted = wanted;
	ck_assert_msg(stage_until(queue->subject->stage, has_wanted, queue), "%llu of %llu events",
		      (unsigned long long)queue->count, (unsigned long long)wanted);
}

/* Nothing comes any more, not even late. */
static void queue_silent(struct queue *queue, uint64_t count)
{
	stage_run(queue->subject->stage, 50);
	ck_assert_uint_eq(queue->count, count);
}

void queue_port_changes(const struct loop_driver *driver)
{
	struct subject subject;
	struct queue queue;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	queue_open(&queue, &subject, MLX5VFIO_EVENT_PORT_STATE_CHANGE, 0, on_port);
	support_sim("port 0 down");
	queue_until(&queue, 1);
	support_sim("port 0 up %d every 2ms", CHANGES - 1);
	queue_until(&queue, CHANGES);
	queue_silent(&queue, CHANGES);
	ck_assert_uint_eq(subject_stats(&subject).events, CHANGES);
	mlx5vfio_eq_close(queue.eq);
	support_sim("port 0 up");
	queue_silent(&queue, CHANGES);
	subject_end(&subject);
	stage_end(&stage);
}

void queue_storm(const struct loop_driver *driver)
{
	uint64_t events = (uint64_t)support_rounds(1000000);
	struct subject subject;
	struct queue queue;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	queue_open(&queue, &subject, MLX5VFIO_EVENT_GENERAL, 0, on_numbered);
	queue.slow = true;
	support_sim("events 0 0x22 %llu", (unsigned long long)events);
	/* the patience is for a part of them: under valgrind all take a while */
	for (uint64_t part = 1; part <= PARTS; part++)
		queue_until(&queue, events * part / PARTS);
	queue_silent(&queue, events);
	mlx5vfio_eq_close(queue.eq);
	subject_end(&subject);
	stage_end(&stage);
}

/* In every turn of the storm something else on the loop gets its turn too. */
void queue_budget(const struct loop_driver *driver)
{
	uint64_t events = (uint64_t)support_rounds(20000), before;
	struct subject subject;
	struct queue queue;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	queue_open(&queue, &subject, MLX5VFIO_EVENT_GENERAL, BUDGET, on_numbered);
	support_sim("events 0 0x22 %llu", (unsigned long long)events);
	while (queue.count < events) {
		before = queue.count;
		stage.reads = 0;
		ck_assert_int_eq((int)write(stage.pipe[1], "x", 1), 1);
		stage_turn(&stage);
		ck_assert_uint_le(queue.count - before, BUDGET);
		ck_assert_uint_eq(stage.reads, 1);
	}
	mlx5vfio_eq_close(queue.eq);
	subject_end(&subject);
	stage_end(&stage);
}

static void close_queue(struct queue *queue)
{
	mlx5vfio_eq_close(queue->eq);
}

void queue_closed_in_handler(const struct loop_driver *driver)
{
	struct subject subject;
	struct queue queue;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	queue_open(&queue, &subject, MLX5VFIO_EVENT_PORT_STATE_CHANGE, 0, on_port);
	queue.act = close_queue;
	support_sim("port 0 down 8");
	queue_until(&queue, 1);
	queue_silent(&queue, 1);
	/* the fd number is free again, and another queue takes it */
	queue_open(&queue, &subject, MLX5VFIO_EVENT_PORT_STATE_CHANGE, 0, on_port);
	support_sim("port 0 down");
	queue_until(&queue, 1);
	mlx5vfio_eq_close(queue.eq);
	subject_end(&subject);
	stage_end(&stage);
}

/* A queue opened at once takes the fd number of the one that was closed, before the loop turns. */
static void reopen(struct queue *queue)
{
	const struct mlx5vfio_eq_attr attr = { .events = BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE) };

	mlx5vfio_eq_close(queue->eq);
	queue->eq = mlx5vfio_eq_open(queue->subject->dev, &attr, on_port, queue);
	ck_assert_ptr_nonnull(queue->eq);
	queue->act = NULL;
}

void queue_reopened_in_handler(const struct loop_driver *driver)
{
	struct subject subject;
	struct queue queue;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	queue_open(&queue, &subject, MLX5VFIO_EVENT_PORT_STATE_CHANGE, 0, on_port);
	queue.act = reopen;
	support_sim("port 0 down");
	queue_until(&queue, 1);
	support_sim("port 0 up");
	queue_until(&queue, 2);
	reopen(&queue);
	support_sim("port 0 down");
	queue_until(&queue, 3);
	mlx5vfio_eq_close(queue.eq);
	subject_end(&subject);
	stage_end(&stage);
}

/* The close watches an fd of its own, which then has the queue's number. */
void queue_closed_with_device(const struct loop_driver *driver)
{
	struct subject subject;
	struct queue queue;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	queue_open(&queue, &subject, MLX5VFIO_EVENT_PORT_STATE_CHANGE, 0, on_port);
	queue_silent(&queue, 0);
	mlx5vfio_eq_close(queue.eq);
	subject_close_by_library(&subject);
	subject_expect_detached(&subject);
	ck_assert_uint_eq(subject.closed, 1);
	stage_end(&stage);
}

static void detach_device(struct queue *queue)
{
	subject_detach(queue->subject);
}

void queue_device_detached_in_handler(const struct loop_driver *driver)
{
	struct subject subject;
	struct queue queue;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	queue_open(&queue, &subject, MLX5VFIO_EVENT_PORT_STATE_CHANGE, 0, on_port);
	queue.act = detach_device;
	support_sim("port 0 down 8");
	queue_until(&queue, 1);
	subject_close(&subject);
	subject_expect_detached(&subject);
	queue_silent(&queue, 1);
	stage_end(&stage);
}

void queue_device_dies(const struct loop_driver *driver)
{
	struct subject subject;
	struct queue queue;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	queue_open(&queue, &subject, MLX5VFIO_EVENT_PORT_STATE_CHANGE, 0, on_port);
	support_sim("port 0 down");
	queue_until(&queue, 1);
	support_sim("fatal 0");
	ck_assert(stage_until(&stage, subject_has_fault, &subject));
	support_sim("port 0 up");
	queue_silent(&queue, 1);
	ck_assert_uint_eq(subject.faults, 1);
	/* the queue's memory stays mapped until the ctx is closed: no command may end it any more */
	subject_close_by_library(&subject);
	subject_expect_detached(&subject);
	ck_assert_uint_eq(subject.closed, 1);
	stage_end(&stage);
}

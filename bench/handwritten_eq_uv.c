/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event queue in a libuv loop, written by hand, and the program that measures it against ours.
 * The simulator fills both as fast as they have room.
 */
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#include <mlx5vfio/eq.h>
#include <mlx5vfio/uv.h>

#include "common/devices.c"

enum {
	LOG_SIZE = 8,
	SIZE = 1 << LOG_SIZE,
	ENTRY = 64,
	EVENT = 0x13, /* last WQE reached */
	EVENTS = 20000,
};

static uv_loop_t loop;
static unsigned events_left;

/* What a program does with an event: nothing here but to know it. */
static void on_event(unsigned type, uint32_t qpn)
{
	if (type == EVENT && qpn <= 0xffffff && !--events_left)
		uv_stop(&loop);
}

/* ---- By hand -------------------------------------------------------------------------------- */

struct queue {
	uv_poll_t poll;
	struct mlx5dv_devx_msi_vector *vector;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_eq *eq;
	uint8_t *entries;
	volatile uint32_t *doorbells;
	uint8_t number;
	uint32_t consumer;
};

/* 0x40 arms the queue, 0x48 only makes room. */
static void ring(const struct queue *queue, unsigned offset)
{
	uint32_t value = (uint32_t)queue->number << 24 | (queue->consumer & 0xffffff);

	__sync_synchronize();
	queue->doorbells[offset / 4] = htobe32(value);
	__sync_synchronize();
}

static const uint8_t *next_entry(const struct queue *queue)
{
	const uint8_t *entry = queue->entries + queue->consumer % SIZE * ENTRY;
	uint8_t owner = __atomic_load_n(&entry[ENTRY - 1], __ATOMIC_ACQUIRE) & 1;

	return owner == (queue->consumer / SIZE & 1) ? entry : NULL;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct queue *queue = poll->data;
	const uint8_t *entry;
	eventfd_t count;

	(void)status;
	(void)events;
	eventfd_read(queue->vector->fd, &count);
	while ((entry = next_entry(queue))) {
		uint32_t qpn;

		memcpy(&qpn, entry + 56, sizeof(qpn));
		on_event(entry[1], be32toh(qpn) & 0xffffff);
		if (++queue->consumer % (SIZE / 2) == 0)
			ring(queue, 0x48);
	}
	ring(queue, 0x40);
}

static void create(struct ibv_context *ctx, struct queue *queue)
{
	uint32_t size_and_uar = htobe32(LOG_SIZE << 24 | queue->uar->page_id);
	uint64_t events = htobe64(UINT64_C(1) << EVENT);
	uint8_t in[0x110] = { 0x03, 0x01 }; /* CREATE_EQ */
	uint8_t out[0x10] = { 0 };

	memcpy(in + 0x1c, &size_and_uar, sizeof(size_and_uar));
	memcpy(in + 0x58, &events, sizeof(events));
	in[0x27] = (uint8_t)queue->vector->vector;
	queue->eq = mlx5dv_devx_create_eq(ctx, in, sizeof(in), out, sizeof(out));
	require(queue->eq != NULL, "create_eq");
	queue->number = out[0x0b];
}

static void open_by_hand(struct ibv_context *ctx)
{
	static struct queue queue;

	queue.vector = mlx5dv_devx_alloc_msi_vector(ctx);
	queue.uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	require(queue.vector && queue.uar, "vector");
	create(ctx, &queue);
	queue.entries = queue.eq->vaddr;
	queue.doorbells = queue.uar->base_addr;
	for (int i = 0; i < SIZE; i++)
		queue.entries[i * ENTRY + ENTRY - 1] = 1;
	queue.poll.data = &queue;
	uv_poll_init(&loop, &queue.poll, queue.vector->fd);
	uv_poll_start(&queue.poll, UV_READABLE, on_readable);
	ring(&queue, 0x40);
}

/* ---- Ours ----------------------------------------------------------------------------------- */

static void on_our_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	(void)eq;
	(void)arg;
	on_event(event->type, event->qpn);
}

/* As large a budget as there are entries: the other way has none. */
static void open_ours(struct ibv_context *ctx)
{
	struct mlx5vfio_eq_attr attr = { LOG_SIZE, SIZE, UINT64_C(1) << EVENT };
	struct mlx5vfio *dev = mlx5vfio_uv_attach(&loop, ctx);

	require(dev && mlx5vfio_eq_open(dev, &attr, on_our_event, NULL), "eq_open");
}

/* ---- The measurement ------------------------------------------------------------------------ */

struct figures {
	double cpu_ns, wall_ns; /* per event */
};

static struct figures run(unsigned dev)
{
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t wall = clock_ns(CLOCK_MONOTONIC);

	events_left = EVENTS;
	device_control("events %u %d %d", dev, EVENT, EVENTS);
	uv_run(&loop, UV_RUN_DEFAULT);
	return (struct figures){
		(double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / EVENTS,
		(double)(clock_ns(CLOCK_MONOTONIC) - wall) / EVENTS,
	};
}

/* callgrind counts in here alone. */
static __attribute__((noinline)) void run_counted(void)
{
	run(0);
}

static void compare(int rounds)
{
	open_ours(device_open(0));
	open_by_hand(device_open(1));
	for (int round = -1; round < rounds; round++) {
		struct figures ours = run(0);
		struct figures hand = run(1);

		if (round < 0)
			continue;
		printf("eq-cpu 1 %.2f %.2f\n", ours.cpu_ns, hand.cpu_ns);
		printf("eq-rate 1 %.0f %.0f\n", 1e9 / ours.wall_ns, 1e9 / hand.wall_ns);
	}
}

int main(int argc, char *argv[])
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s ROUNDS | ours | hand\n", argv[0]);
		return 2;
	}
	uv_loop_init(&loop);
	if (atoi(argv[1])) {
		compare(atoi(argv[1]));
	} else {
		(strcmp(argv[1], "ours") ? open_by_hand : open_ours)(device_open(0));
		run_counted();
	}
	fflush(stdout);
	_exit(EXIT_SUCCESS);
}

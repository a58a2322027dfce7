/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queue entries (core/ring.c) as a broken device might write them. The first byte says how
 * large the queue is, the second where it has got to, the third what types were asked for; entries
 * follow.
 */
#include <stdlib.h>
#include <string.h>

#include "core/ring.h"

enum {
	HEADER = 3,
	ENTRY = 64,
	NUMBER_MASK = 0xffffff,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* Whatever an entry says, what comes of it is in range. */
static void check_event(const struct mlx5vfio_event *event)
{
	require((unsigned)event->type <= UINT8_MAX);
	switch (event->type) {
	case MLX5VFIO_EVENT_PORT_STATE_CHANGE:
		require(event->port < 16);
		break;
	case MLX5VFIO_EVENT_COMPLETION:
	case MLX5VFIO_EVENT_CQ_ERROR:
		require(event->cqn <= NUMBER_MASK);
		break;
	case MLX5VFIO_EVENT_SRQ_LIMIT:
	case MLX5VFIO_EVENT_SRQ_CATASTROPHIC_ERROR:
		require(event->srqn <= NUMBER_MASK);
		break;
	default:
		break;
	}
	require(mlx5vfio_event_str(event->type) != NULL);
}

/* No entry is handed out twice, so a full queue ends. */
static void drain(struct ring *ring)
{
	uint32_t most = UINT32_C(1) << ring->log_size;
	struct mlx5vfio_event event;
	uint32_t taken = 0;

	while (ring_next(ring, &event)) {
		check_event(&event);
		require(++taken <= most);
		require(ring->consumer - ring->told < most);
	}
	ring_overrun(ring);
	ring_arm(ring);
	require(ring->told == ring->consumer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint32_t uar[1024];
	struct ring ring = { .number = 7, .uar = uar };
	size_t bytes;

	if (size < HEADER)
		return 0;
	ring.log_size = 4 + data[0] % 4;
	bytes = (size_t)ENTRY << ring.log_size;
	ring.entries = calloc(1, bytes);
	if (!ring.entries)
		return 0;
	size -= HEADER;
	memcpy(ring.entries, data + HEADER, size < bytes ? size : bytes);
	if (data[1] & 1)
		ring_init(&ring, UINT64_C(1) << data[2] % 64);
	else
		ring.told = ring.consumer = UINT32_MAX - data[1];
	drain(&ring);
	free(ring.entries);
	return 0;
}

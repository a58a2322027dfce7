/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: none; valgrind */
/*
 * The memory of an event queue by itself, at the places where its numbers wrap: owner bit, the 24
 * bits of the doorbell, the 32 bits of the counter.
 */
#include "../core/ring.c"

#include <stdio.h>
#include <stdlib.h>

#include "support/support.h"

#define NUMBER 0x2a
#define TYPE   MLX5VFIO_EVENT_GENERAL
#define ALL    UINT64_MAX

/* A queue as its device sees it. */
struct device {
	struct ring ring;
	uint32_t doorbells[0x100 / 4];
	uint32_t producer;
};

static void device_start(struct device *dev, unsigned log_size, uint32_t first)
{
	size_t size = (size_t)ENTRY_SIZE << log_size;
	uint32_t i;

	*dev = (struct device){ .producer = first };
	dev->ring = (struct ring){ .entries = calloc(1, size),
				   .log_size = log_size,
				   .number = NUMBER,
				   .consumer = first,
				   .told = first,
				   .uar = dev->doorbells };
	ck_assert_ptr_nonnull(dev->ring.entries);
	for (i = 0; i < UINT32_C(1) << log_size; i++)
		entry_at(&dev->ring, first + i)[ENTRY_OWNER] = !owner_at(&dev->ring, first + i);
}

static void device_end(struct device *dev)
{
	free(dev->ring.entries);
}

static void write_entry(struct device *dev)
{
	uint8_t *entry = entry_at(&dev->ring, dev->producer);
	uint32_t number = htobe32(dev->producer);

	memset(entry, 0, ENTRY_OWNER);
	entry[ENTRY_TYPE] = TYPE;
	memcpy(entry + ENTRY_DATA, &number, sizeof(number));
	entry[ENTRY_OWNER] = owner_at(&dev->ring, dev->producer);
	dev->producer++;
}

static void expect_next(struct device *dev, uint32_t number)
{
	struct mlx5vfio_event event;

	ck_assert(ring_next(&dev->ring, &event));
	ck_assert_int_eq(event.type, TYPE);
	ck_assert_uint_eq(event.raw[0], number);
}

static void expect_nothing(struct device *dev)
{
	struct mlx5vfio_event event;

	ck_assert(!ring_next(&dev->ring, &event));
	ck_assert(!ring_overrun(&dev->ring));
}

static uint32_t rung(const struct device *dev, unsigned offset)
{
	return be32toh(dev->doorbells[offset / 4]);
}

static const uint32_t starts[] = { 0, 0x7ffff0, 0xfffff0, 0xffffff, 0x7ffffff0, 0xfffffff0 };

/* Each batch leaves the queue at another place; the doorbell has 24 bits, the counter goes on. */
START_TEST(wraps)
{
	unsigned log_size = 4 + (unsigned)_i % 3 * 2;
	uint32_t size = UINT32_C(1) << log_size, first, batch, i;
	struct device dev;

	first = starts[_i];
	device_start(&dev, log_size, first);
	expect_nothing(&dev);
	for (batch = 1; batch <= size; batch += 5) {
		for (i = 0; i < batch; i++)
			write_entry(&dev);
		for (i = 0; i < batch; i++)
			expect_next(&dev, first++);
		expect_nothing(&dev);
		ring_arm(&dev.ring);
		ck_assert_uint_eq(rung(&dev, DOORBELL_ARM),
				  (uint32_t)NUMBER << 24 | (first & 0xffffff));
	}
	device_end(&dev);
}
END_TEST

/* Never more than the spare entries, or half of a small queue, are taken in silence. */
START_TEST(doorbell_in_time)
{
	unsigned log_size = 4 + (unsigned)_i * 2;
	uint32_t most = log_size < 8 ? UINT32_C(1) << (log_size - 1) : 128, i;
	struct device dev;

	device_start(&dev, log_size, 0);
	for (i = 0; i < UINT32_C(1) << log_size; i++)
		write_entry(&dev);
	for (i = 0; i < UINT32_C(1) << log_size; i++) {
		expect_next(&dev, i);
		ck_assert_uint_lt(dev.ring.consumer - dev.ring.told, most);
		if (dev.ring.consumer == most)
			ck_assert_uint_eq(rung(&dev, DOORBELL_UPDATE),
					  (uint32_t)NUMBER << 24 | most);
	}
	device_end(&dev);
}
END_TEST

/* One entry more than there is room for, after any number of taken ones. */
START_TEST(overrun)
{
	struct mlx5vfio_event event;
	struct device dev;
	uint32_t i;

	device_start(&dev, 4, (uint32_t)_i);
	for (i = 0; i < 16; i++)
		write_entry(&dev);
	ck_assert(!ring_overrun(&dev.ring));
	write_entry(&dev);
	ck_assert(!ring_next(&dev.ring, &event));
	ck_assert(ring_overrun(&dev.ring));
	device_end(&dev);
}
END_TEST

/* A queue that was full once, before a doorbell or after it, has been so until somebody asks. */
START_TEST(was_full)
{
	struct device dev;
	uint32_t i;

	device_start(&dev, 4, 0);
	ck_assert(!ring_was_full(&dev.ring));
	for (i = 0; i < 15; i++)
		write_entry(&dev);
	ck_assert(!ring_was_full(&dev.ring));
	write_entry(&dev);
	ck_assert(ring_was_full(&dev.ring));
	for (i = 0; i < 16; i++)
		expect_next(&dev, i);
	ring_update(&dev.ring);
	ck_assert(ring_was_full(&dev.ring));
	ck_assert(!ring_was_full(&dev.ring));
	device_end(&dev);
}
END_TEST

/* libmlx5 hands out memory as it comes; the device may have written before we look. */
START_TEST(early_events)
{
	static const int garbage[] = { 0, 0x04, 0x22, 0xff };
	struct device dev;
	uint32_t i;

	device_start(&dev, 4, 0);
	memset(dev.ring.entries, garbage[_i % 4], (size_t)ENTRY_SIZE << 4);
	for (i = 0; i < (uint32_t)_i / 4; i++)
		write_entry(&dev);
	ring_init(&dev.ring, ALL);
	for (i = 0; i < (uint32_t)_i / 4; i++)
		expect_next(&dev, i);
	expect_nothing(&dev);
	write_entry(&dev);
	expect_next(&dev, (uint32_t)_i / 4);
	device_end(&dev);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("eq ring");
	TCase *tcase = tcase_create("ring");

	tcase_add_loop_test(tcase, wraps, 0, sizeof(starts) / sizeof(starts[0]));
	tcase_add_loop_test(tcase, doorbell_in_time, 0, 4);
	tcase_add_loop_test(tcase, overrun, 0, 40);
	tcase_add_test(tcase, was_full);
	tcase_add_loop_test(tcase, early_events, 0, 4 * 16);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

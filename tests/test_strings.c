/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: none; valgrind */
/* Words for numbers: every number that has a name, and every other one, which has none. */
#include <mlx5vfio/eq.h>

#include "support/support.h"

struct word {
	unsigned number;
	const char *text;
};

#define COUNT(words) (sizeof(words) / sizeof((words)[0]))

static const struct word faults[] = {
	{ MLX5VFIO_OK, "healthy" },
	{ MLX5VFIO_PCI_OFFLINE, "PCI offline" },
	{ MLX5VFIO_NIC_DISABLED, "NIC interface disabled" },
	{ MLX5VFIO_NIC_RESET, "NIC interface in software reset" },
	{ MLX5VFIO_FW_FATAL, "fatal firmware error" },
	{ MLX5VFIO_STALLED, "health counter stalled" },
	{ MLX5VFIO_FOREIGN_RESET, "reset by somebody else" },
	{ MLX5VFIO_PCI_ERROR, "PCI error" },
};

/* As the programmer's reference manual has them. */
static const struct word syndromes[] = {
	{ 0x00, "none" },
	{ 0x01, "firmware internal error" },
	{ 0x07, "firmware core not responding" },
	{ 0x08, "unrecoverable hardware error" },
	{ 0x09, "firmware CRC error" },
	{ 0x0a, "PCI error on ICM fetch" },
	{ 0x0b, "fatal hardware error" },
	{ 0x0c, "asynchronous event queue overrun" },
	{ 0x0d, "event queue error" },
	{ 0x0e, "invalid event queue referenced" },
	{ 0x0f, "FFSER error" },
	{ 0x10, "high temperature" },
};

static const struct word events[] = {
	{ 0x00, "completion" },
	{ 0x01, "path migrated" },
	{ 0x02, "communication established" },
	{ 0x03, "send queue drained" },
	{ 0x04, "CQ error" },
	{ 0x05, "work queue catastrophic error" },
	{ 0x07, "path migration failed" },
	{ 0x08, "internal error" },
	{ 0x09, "port state change" },
	{ 0x0c, "page fault" },
	{ 0x0d, "NIC vport change" },
	{ 0x0e, "e-switch functions changed" },
	{ 0x0f, "VHCA state change" },
	{ 0x10, "work queue invalid request error" },
	{ 0x11, "work queue access error" },
	{ 0x12, "SRQ catastrophic error" },
	{ 0x13, "last WQE reached" },
	{ 0x14, "SRQ limit reached" },
	{ 0x15, "GPIO event" },
	{ 0x16, "port module event" },
	{ 0x17, "temperature warning" },
	{ 0x18, "XRQ error" },
	{ 0x19, "remote configuration" },
	{ 0x1a, "doorbell congestion" },
	{ 0x1b, "stall" },
	{ 0x1c, "DCT drained" },
	{ 0x1d, "DCT key violation" },
	{ 0x20, "FPGA error" },
	{ 0x21, "FPGA QP error" },
	{ 0x22, "general event" },
	{ 0x24, "monitor counter" },
	{ 0x25, "pulse per second" },
	{ 0x26, "device tracer" },
	{ 0x27, "object change" },
	{ MLX5VFIO_EVENT_QUEUE_OVERRUN, "event queue overrun" },
};

static const char *text_of(const struct word *words, size_t count, unsigned number,
			   const char *unknown)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (words[i].number == number)
			return words[i].text;
	return unknown;
}

START_TEST(every_fault)
{
	unsigned i;

	for (i = 0; i <= UINT8_MAX; i++)
		ck_assert_str_eq(mlx5vfio_fault_str((enum mlx5vfio_fault)i),
				 text_of(faults, COUNT(faults), i, "unknown fault"));
}
END_TEST

START_TEST(every_syndrome)
{
	unsigned i;

	for (i = 0; i <= UINT8_MAX; i++)
		ck_assert_str_eq(mlx5vfio_synd_str((uint8_t)i),
				 text_of(syndromes, COUNT(syndromes), i, "unknown syndrome"));
}
END_TEST

START_TEST(every_event)
{
	unsigned i;

	for (i = 0; i <= 2 * UINT8_MAX; i++)
		ck_assert_str_eq(mlx5vfio_event_str((enum mlx5vfio_event_type)i),
				 text_of(events, COUNT(events), i, "unknown event"));
}
END_TEST

START_TEST(version)
{
	ck_assert_str_eq(mlx5vfio_version(), MLX5VFIO_VERSION);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("strings");
	TCase *tcase = tcase_create("strings");

	tcase_add_test(tcase, every_fault);
	tcase_add_test(tcase, every_syndrome);
	tcase_add_test(tcase, every_event);
	tcase_add_test(tcase, version);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Big-endian fields in device registers, commands and event queue entries. */
#ifndef SIM_BYTES_H
#define SIM_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t get_be16(const void *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return be16toh(value);
}

static inline uint32_t get_be24(const uint8_t *at)
{
	return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

static inline uint32_t get_be32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static inline uint64_t get_be64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

static inline void put_be16(void *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, sizeof(value));
}

static inline void put_be24(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 16);
	at[1] = (uint8_t)(value >> 8);
	at[2] = (uint8_t)value;
}

static inline void put_be32(void *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void put_be64(void *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}

#endif

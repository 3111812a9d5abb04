/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte rings.  A byte is known by its running total, the number of those that came before it since
 * the beginning: what lies in a ring is the difference of two totals, and full is not empty.  The
 * caller sees to it that n bytes are there, or have room (credit.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of n bytes from that place in the ring on, how many lie in one piece; the rest begins it. */
static inline size_t ring_piece(size_t size, size_t at, size_t n)
{
	return n < size - at ? n : size - at;
}

/* Copies n bytes, at most size, into the ring. */
static inline void ring_put(uint8_t *ring, size_t size, uint64_t from, const void *p, size_t n)
{
	size_t at = from % size, first = ring_piece(size, at, n);

	memcpy(ring + at, p, first);
	memcpy(ring, (const uint8_t *)p + first, n - first);
}

/* The same out of it; they stay there. */
static inline void ring_get(const uint8_t *ring, size_t size, uint64_t from, void *p, size_t n)
{
	size_t at = from % size, first = ring_piece(size, at, n);

	memcpy(p, ring + at, first);
	memcpy((uint8_t *)p + first, ring, n - first);
}

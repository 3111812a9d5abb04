/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of queue pairs within a block: in an order that is drawn for each block, so that who
 * knows one number does not know the next.  The word of a block in the segment
 * (struct seg.qpn_block) has which indices it is for, and a key that makes the order.
 *
 *   31 ................ 10 | 9 ...... 0
 *          key                first index / SEG_QPN_PER_BLOCK + 1; 0: it is not leased here
 */
#pragma once

#include <stdint.h>

enum { SEG_QPN_PER_BLOCK = 256, QPN_WORD_INDEX_BITS = 10 };

enum { QPN_HALF_BITS = 4, QPN_HALF = (1 << QPN_HALF_BITS) - 1, QPN_ROUNDS = 4 };

/* The word of the block whose first index that is, a multiple of SEG_QPN_PER_BLOCK; drawn: 22 bits.
 */
static inline uint32_t qpn_word(uint32_t first_index, uint32_t drawn)
{
	return drawn << QPN_WORD_INDEX_BITS | (first_index / SEG_QPN_PER_BLOCK + 1);
}

/* The first index; the word is not 0.  Whatever a peer has put there. */
static inline uint32_t qpn_first_index(uint32_t word)
{
	uint32_t n = word & ((1u << QPN_WORD_INDEX_BITS) - 1);

	return (n - 1) * SEG_QPN_PER_BLOCK;
}

static inline uint32_t qpn_mix(uint32_t word, uint32_t half, uint32_t round)
{
	uint32_t v = (word >> QPN_WORD_INDEX_BITS) + half * 0x9e3779b1u + round * 0x85ebca77u;

	v = (v ^ v >> 15) * 0xc2b2ae3du;
	return (v ^ v >> 13) >> 7 & QPN_HALF;
}

/* The number, within the block, of its i-th index: both below SEG_QPN_PER_BLOCK. */
static inline uint32_t qpn_of_index(uint32_t word, uint32_t i)
{
	uint32_t left = i >> QPN_HALF_BITS, right = i & QPN_HALF, next;

	for (uint32_t round = 0; round < QPN_ROUNDS; round++) {
		next = left ^ qpn_mix(word, right, round);
		left = right;
		right = next;
	}
	return left << QPN_HALF_BITS | right;
}

/* The other way round. */
static inline uint32_t qpn_to_index(uint32_t word, uint32_t n)
{
	uint32_t left = n >> QPN_HALF_BITS, right = n & QPN_HALF, before;

	for (uint32_t round = QPN_ROUNDS; round-- > 0;) {
		before = right ^ qpn_mix(word, left, round);
		right = left;
		left = before;
	}
	return left << QPN_HALF_BITS | right;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client's dma_map filled in: checked, and copied. */
#pragma once

#include <stdint.h>

struct sg_table;

/* Bytes that lie together on the bus. */
struct peer_piece {
	uint64_t address, length;
};

struct peer_pieces {
	struct peer_piece *piece;
	unsigned count;
};

/*
 * Copies the first nmap entries of table into *out, adjacent ones as one; of each nothing is read
 * but dma_address and dma_length.  They must be whole pages of 4096 bytes, must not wrap, and must
 * hold at least need bytes.  0, then the caller owns out->piece; -EINVAL, with *why; -ENOMEM.
 */
int peer_table_take(const struct sg_table *table, int nmap, uint64_t need, struct peer_pieces *out,
	const char **why);

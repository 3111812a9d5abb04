/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client's dma_map filled in: checked, and copied. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct peer_window;
struct sg_table;

/* Bytes that lie together on the bus. */
struct peer_piece {
	uint64_t address, length;
	struct peer_window *window; /* held; NULL: an address of this process */
	uint64_t begin;             /* how many bytes lie before it */
};

struct peer_pieces {
	struct peer_piece *piece;
	unsigned count;
	struct peer_window **flush; /* those windows that have a function to flush, each once */
	unsigned flushes;
	bool held;     /* the windows are */
	bool anywhere; /* any thread may call the functions of all its windows */
};

/*
 * Copies the first nmap entries of table into *out, adjacent ones as one; of each nothing is read
 * but dma_address and dma_length.  They must be whole pages of 4096 bytes, must not wrap, and must
 * hold at least need bytes, and none lies in a DMA window partly.  0, then *out is to
 * be let go of and freed; -EINVAL, with *why; -ENOMEM.
 */
int peer_table_take(const struct sg_table *table, int nmap, uint64_t need, struct peer_pieces *out,
	const char **why);

/* Lets go of the windows, if they are held: they are not looked at any more. */
void peer_pieces_let_go(struct peer_pieces *p);

/* Frees what p points to; its windows were let go of, or are another process's. */
void peer_pieces_free(struct peer_pieces *p);

/* The index of the piece with byte off, which one of them has. */
unsigned peer_piece_of(const struct peer_pieces *p, uint64_t off);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process holds which block of 256 QP numbers.  Pure logic.  Block 0 is never leased (QP
 * numbers 0 and 1 are special); a block that was given back is not leased again before all
 * others were.
 */
#pragma once

#include <stdint.h>

enum { LEASE_BLOCKS = 1 << 16, LEASE_QPNS = 256 };

struct leases {
	uint32_t owner[LEASE_BLOCKS]; /* attach id, 0 = free */
	uint32_t cursor;              /* where the search for a free one goes on */
	uint32_t count;
};

/* l is zeroed; the starts of weftd in turn begin at one of 16 places, so that a new weftd does
 * not lease what a process that has not yet published again holds. */
void leases_init(struct leases *l, uint32_t epoch);
/* Returns a block, or -ENOSPC. */
int lease_take(struct leases *l, uint32_t attach_id);
/* The process holds that block already.  -EEXIST: it is another's; -EINVAL: no such block. */
int lease_claim(struct leases *l, uint32_t block, uint32_t attach_id);
/* -ENOENT: the process does not hold it. */
int lease_return(struct leases *l, uint32_t block, uint32_t attach_id);
/* Returns all blocks of a process. */
void lease_drop(struct leases *l, uint32_t attach_id);
/* The attach id that holds the block of a QP number, or 0. */
uint32_t lease_owner(const struct leases *l, uint32_t qpn);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process holds which LEASE_QPNS queue pair numbers, each by a claim
 * (daemon/tables/claims.h). Block 0 is never leased.  Where others have taken all claims, blocks
 * are leased without.
 */
#pragma once

#include <stdint.h>

#include "daemon/tables/claims.h"

enum { LEASE_BLOCKS = CLAIMS, LEASE_QPNS = CLAIM_QPNS };

struct leases {
	uint32_t owner[LEASE_BLOCKS]; /* attach id, 0 = free */
	uint32_t count;
	struct claims claims;
};

/* Returns a block; -ENOSPC: this fabric has leased all; -EMFILE and the like: no socket. */
int lease_take(struct leases *l, uint32_t attach_id);
/*
 * The process holds that block already; fd: the socket of its claim, -1: it has lost it; unclaimed:
 * it never had one.  Takes fd over on success.  -EEXIST: it is another's; -EINVAL: no such block,
 * or not its socket.
 */
int lease_claim(struct leases *l, uint32_t block, uint32_t attach_id, int fd, bool unclaimed);
/* -ENOENT: the process does not hold it. */
int lease_return(struct leases *l, uint32_t block, uint32_t attach_id);
/* Returns all blocks of a process. */
void lease_drop(struct leases *l, uint32_t attach_id);
/* The attach id that holds the block of a QP number, or 0. */
uint32_t lease_owner(const struct leases *l, uint32_t qpn);
/* Whether a number that nobody holds is of this fabric all the same, for who has not come yet. */
bool lease_is_ours(const struct leases *l, uint32_t qpn);

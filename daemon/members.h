/* SPDX-License-Identifier: BSD-3-Clause */
/* The hub's list of members (hca/member.h): a copy of what the processes list. */
#pragma once

#include "hca/layout.h"

/* An entry of a process's list, while it is compared with the hub's. */
struct member_wish {
	uint32_t word;
	uint8_t key[16];
	bool listed;
};

struct members {
	uint32_t owner[SEG_MEMBERS]; /* attach id of the entry in the hub, 0 = free */
	struct member_wish wish[SEG_MEMBERS];
};

/*
 * Brings owner's entries in the hub up to date with its segment.  -ENOSPC: the hub is full, and
 * some are missing; a later update may find room for them.
 */
int members_update(struct members *m, struct seg *hub, const struct seg *seg, uint32_t owner);

/* How many entries there are. */
unsigned members_count(const struct members *m, const struct seg *hub);

/* Takes all of owner's away: it is dead. */
void members_drop(struct members *m, struct seg *hub, uint32_t owner);

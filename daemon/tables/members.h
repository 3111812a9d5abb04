/* SPDX-License-Identifier: BSD-3-Clause */
/* The hub's list of members (hca/proc/member.h): a copy of what the processes list. */
#pragma once

#include <stdbool.h>

#include "hca/seg/seg.h"

/* An entry as it was read, once. */
struct member_copy {
	uint32_t word;
	uint8_t key[16];
};

struct members {
	uint32_t owner[SEG_MEMBERS]; /* attach id of the entry in the hub, 0 = free */
	uint16_t from[SEG_MEMBERS];  /* which entry of its owner's list it is a copy of */
	uint16_t head[SEG_MEMBERS], next[SEG_MEMBERS]; /* found by these two */
	uint32_t first_free;                           /* none before is */
	bool missing; /* there was no room for some entry of some process */
};

/*
 * Brings owner's entries in the hub up to date with its segment.  -ENOSPC: the hub is full, and
 * some are missing; a later update may find room for them.
 */
int members_update(struct members *m, struct seg *hub, const struct seg *seg, uint32_t owner);

/* The same where only entry number `from` of the segment has changed. */
int members_change(
	struct members *m, struct seg *hub, const struct seg *seg, uint32_t owner, uint32_t from);

/*
 * Were some missing when this was asked last, or since?  Then the caller updates all processes, as
 * there may be room now; if it does not suffice the next one has to ask again.
 */
bool members_ask_missing(struct members *m);

/* How many entries there are. */
unsigned members_count(const struct members *m, const struct seg *hub);

/* Takes all of owner's away: it is dead. */
void members_drop(struct members *m, struct seg *hub, uint32_t owner);

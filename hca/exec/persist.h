/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FLUSH of type persistent: the one place in which written memory of a region becomes durable.
 * What a region's memory is was found out when it was registered (pages/durable.h) and stands in
 * its entry: MR_PMEM, MR_FILE, or neither.
 */
#pragma once

#include "hca/exec/way.h"

/*
 * Makes range, memory of w->mem that the last region of held allows, durable: everything that was
 * written there before, by whomever.  Called by the executor of the FLUSH, after its checks and
 * before its completion; held allows the range and is valid.
 *
 * MOVE_OK: what the memory is capable of is done (nothing, if it is volatile: that is counted, and
 * stands in weft status).  MOVE_LATER: nothing was done, for it would block; a worker of the
 * memory's own process or a lane of the requester must do it.  Other results as of carry():
 * MOVE_FAULT_* a page is not mapped, MOVE_REFUSED it could not be written, MOVE_GONE, MOVE_LATE,
 * MOVE_TAKEN, MOVE_ANEW.  After any of them a part may be durable.
 *
 * Only a worker may block here: for the disk (its own process's memory), or for the agent of the
 * memory's process.
 */
enum move_result persist_range(struct work *w, struct payload *range, const struct held *held);

/* The same for the rows of ways; kind is not DURABLE_NEVER. */
enum move_result persist_here(
	struct work *w, struct payload *range, const struct held *held, enum durability kind);
enum move_result persist_shared(
	struct work *w, struct payload *range, const struct held *held, enum durability kind);
enum move_result persist_by_owner(
	struct work *w, struct payload *range, const struct held *held, enum durability kind);

/*
 * Makes [addr, addr+len), memory of this process in a region of that kind, durable; what cannot be
 * written stands in the log.  Blocks for the disk.  MOVE_OK; MOVE_FAULT_REMOTE: a page is not
 * mapped; MOVE_REFUSED: it could not be written.
 */
enum move_result persist_own(enum durability kind, uint64_t addr, uint64_t len);

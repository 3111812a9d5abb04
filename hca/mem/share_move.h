/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mapping a region and taking it back: the change-over, in which everybody is kept away from the
 * regions that overlap.  Lock: share.lock.
 */
#pragma once

#include "hca/mem/share_state.h"

/*
 * Keeps everybody away from the regions that overlap [lo, hi), until share_change_end().  False:
 * some peer is stopped in the middle of using our memory.  mapped: also peers that use memory which
 * is mapped, and stays so.
 */
bool share_change_begin(uint64_t lo, uint64_t hi, bool mapped);

void share_change_end(uint64_t lo, uint64_t hi);

/* Takes [lo, hi) back from the arena.  arg: NULL, or a bool that becomes false if some of it stays.
 */
void share_back(uint64_t lo, uint64_t hi, void *arg);

/*
 * Of mr, which is not mapped any more: the pages that no other mapped region needs.  False: a
 * stopped peer is in the way, and they stay.  *all: false if some stay, for whatever reason.
 */
bool share_pages_back(const struct hca_mr *mr, bool *all);

/*
 * Moves mr into the arena, or maps it where it is, if the program shares it by itself.
 * SHARE_MAPPED, or why not.
 */
enum share_reason share_map_region(struct hca_mr *mr);

/* Back to copying, for the sake of another region. */
void share_unmap_region(struct hca_mr *mr);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What may be mapped, and what is worth it: WEFT_SHARE, limits, regions that overlap.  Lock: that
 * of share_state.h.
 */
#pragma once

#include "hca/mem/share_state.h"

/* Reads WEFT_SHARE. */
enum share_mode share_mode_wanted(void);

/* As far as it goes, whatever it costs. */
bool share_is_eager(const struct hca_mr *mr);

/* Its pages are never moved for it; but others are, which lie at the same addresses. */
bool share_is_on_demand(const struct hca_mr *mr);

/*
 * Another region that shares bytes with mr, is mapped or is not, and on which atomics would be
 * served in another way if mr is not, or is; NULL: none.
 */
struct hca_mr *share_mixed(const struct hca_mr *mr, bool mapped);

/* Is it one that peers would map, wherever it lies?  SHARE_MAPPED, or why not. */
enum share_reason share_fit(const struct hca_mr *mr);

/* Does moving it into the arena promise to pay?  SHARE_MAPPED, or why not. */
enum share_reason share_wanted(const struct hca_mr *mr);

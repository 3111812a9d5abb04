/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which regions peers reach through mapped pages: the policy (WEFT_SHARE), the change-over while
 * other regions overlap, and fork.  A region is mapped in ibv_reg_mr or never, and goes back in
 * ibv_dereg_mr.  Two regions that overlap may be served differently, but never are atomics on
 * one word.
 */
#pragma once

#include "hca/objects.h"

/*
 * mr, whose index, address and access are set, is being registered: enters it into the set and
 * maps it if that is wanted and safe.  Sets the share word of its entry, before there is a key.
 * May wait for running peers, and up to 100 ms for stopped ones.
 */
void share_reg(struct hca_mr *mr);

/* mr's key is gone and nobody uses it any more: takes its pages back and forgets it. */
void share_dereg(struct hca_mr *mr);

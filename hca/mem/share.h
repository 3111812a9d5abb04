/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which regions peers reach through mapped pages: the policy (WEFT_SHARE), the change-over while
 * other regions overlap, and fork.  A region is mapped in ibv_reg_mr or never, and goes back in
 * ibv_dereg_mr.  Two regions that overlap may be served differently, but never are atomics on
 * one word.
 */
#pragma once

#include "hca/obj/mr.h"
#include "hca/proc/quiesce.h"

/*
 * mr, whose index, address and access are set, is being registered: enters it into the set and
 * maps it if that is wanted and safe.  Sets the share word of its entry, before there is a key.
 * May wait for running peers, and up to 100 ms for stopped ones.
 */
void share_reg(struct hca_mr *mr);

/* mr's key is gone and nobody uses it any more: takes its pages back and forgets it. */
void share_dereg(struct hca_mr *mr);

/*
 * mr's key is gone, and nobody uses it any more but those of *late, through its arena.  True: they
 * cannot reach the program's memory any more; mr is in quarantine with its entry in the table of
 * regions, and *late with it.  False: they must be waited for; share_dereg() has been done.
 */
bool share_dereg_late(struct hca_mr *mr, struct late *late);

/* Ends quarantines that are over.  Cheap if there is none. */
void share_look(void);

/* Reads what WEFT_SHARE wants, once.  Lock: share.lock. */
void share_set_mode(void);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ranges of this process's memory can be mapped by peers, and moving them into the arena
 * and back.  Knows nothing of regions; the caller holds the lock of share_state.h and keeps peers
 * that copy by system calls out of the range meanwhile.
 */
#pragma once

#include "hca/seg/seg.h"
#include "pages/convert.h"

enum { RANGE_RUNS = 16 };

/* Whole pages of one area that are to be moved. */
struct range_run {
	uint64_t start, end;
	struct vma area; /* the whole of it */
	struct vma_attr attr;
};

/* What mapping [lo, hi) takes. */
struct range_plan {
	uint64_t lo, hi;
	unsigned n; /* 0: all of it lies in the arena already */
	bool threads;
	struct range_run run[RANGE_RUNS];
};

/*
 * Looks at [lo, hi), whole pages, and fills *p.  SHARE_MAPPED if it can be mapped, else why not.
 * eager: however long it takes to look.  claimed(): does somebody need what the arena has at [lo,
 * hi), although this memory is not there?  Touches no page of the range.
 */
enum share_reason range_plan(struct range_plan *p, uint64_t lo, uint64_t hi, bool eager,
	bool (*claimed)(uint64_t lo, uint64_t hi));

/*
 * Moves what is planned into the arena.  user: also where system calls of other threads into the
 * range may answer EFAULT meanwhile; then it must begin and end with the region (whole).  On any
 * answer but SHARE_MAPPED all is as it was.
 */
enum share_reason range_there(const struct range_plan *p, bool user, bool whole);

/*
 * Makes [lo, hi) private again where it lies in the arena, also what the program has moved
 * elsewhere since, and empties the arena there.  fork: for the sake of a fork, which asks for
 * more care with attributes.  False: some of it stays shared.
 */
bool range_back(uint64_t lo, uint64_t hi, bool fork);

/*
 * In a forked child: makes all that still maps the parent's arena its own, and forgets it.  left:
 * there is something, so that a failure is told in the log.
 */
void range_forked_child(bool left);

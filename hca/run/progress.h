/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits for time: QPs whose requests are parked, or whose peer was not found. */
#pragma once

#include "hca/obj/srq.h"

/* Our direction of qp is parked, or its peer was not found: progress_slow() looks after it. */
void progress_watch(struct hca_qp *qp);

/* The QP goes: forget it. */
void progress_forget(struct hca_qp *qp);
/* In a forked child. */
void progress_forked_child(void);

/*
 * The slow side of waiting: deadlines of parked QPs that weftd may have lost, peers not found
 * yet.  Called from idle polls and before sleeping; cheap when there is nothing.
 */
void progress_slow(void);

/*
 * Looks, every 10 ms at most, whether weftd has died, and goes to its successor: peers that look
 * for us ask that one.  Ends quarantines that are over.  Blocks only to start weftd.
 */
void progress_weftd(void);

/*
 * For who sleeps in our calls: has each QP with requests watched, whoever was to execute them. That
 * process may be dead, and weftd with it, who would have told.  True if there are some.
 */
bool progress_stalled(void);

/* The same at once: the program is about to sleep where we cannot see it. */
void progress_before_sleep(void);

/* How many QPs of ours wait for a deadline or for their peer; progress.c's own. */
extern _Atomic uint32_t progress_parked;

/* True while there is one. */
static inline bool progress_pending(void)
{
	return atomic_load_explicit(&progress_parked, memory_order_relaxed) != 0;
}

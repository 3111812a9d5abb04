/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places in the arena that somebody may still touch although no region of ours is there any more:
 * of a region that went while a peer stood still (hca/mem/quarantine.h), of an export that was
 * closed while others map it (hca/mem/share_export.h); and whether anything else was left behind
 * there. Lock: that of share_state.h, but where it says otherwise.
 */
#pragma once

#include "hca/obj/mr.h"

struct place_kind {
	bool stays; /* its memory stays shared: a forked child has to copy it out */
	bool waits; /* emptying it may wait for peers: not while a program polls */
	/* Does nobody touch it any more? */
	bool (*over)(const struct place *p);
	/* It is over: what late writers left there goes. */
	void (*empty)(struct place *p);
	/* The same, later and without the lock: frees it. */
	void (*end)(struct place *p);
};

/*
 * p, whose bounds are set, belongs to the list from here on.  No region is mapped within them until
 * it is over; lo == hi: that forbids nothing.
 */
void place_add(struct place *p, const struct place_kind *kind);

/* Is some of [lo, hi) out of bounds? */
bool place_covers(uint64_t lo, uint64_t hi);

/* Is there one that is emptied without waiting?  Takes no lock. */
bool place_any(void);

/*
 * Takes out and empties those that are over, of the kinds that wait or of those that do not; they
 * go to place_end() without the lock.
 */
struct place *place_sweep(bool waits);
void place_end(struct place *over);

/* Pages of ours that no region needs any more stay shared, for good. */
void place_leave_behind(void);

/* Does anything stay there, for a child to copy? */
bool place_stays(void);

/* A forked child has none. */
void place_forked_child(void);

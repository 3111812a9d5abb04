/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions that were deregistered while a stopped peer was in the middle of using mapped memory of
 * ours.  What it still does goes to the place in the arena where such a region was, which shows
 * nobody anything until the peer has moved or died; until then the place takes no other memory,
 * and the entry of the table of regions, of which the peer may have read one half, no other region.
 * Lock: that of share_state.h, but where it says otherwise.
 */
#pragma once

#include "hca/obj/mr.h"
#include "hca/proc/quiesce.h"

/* Is there room for one more region of so many bytes? */
bool quarantine_room(uint64_t bytes);

/*
 * The entry of mr, whose key is gone, is kept from others until all of *late is over, whose
 * references it takes over; so is [mr->lo, mr->hi) of the arena if place.  False: no memory; then
 * *late stays the caller's.
 */
bool quarantine_add(struct hca_mr *mr, struct late *late, bool place);

/* Is some of [lo, hi) of the arena out of bounds? */
bool quarantine_covers(uint64_t lo, uint64_t hi);

struct quarantined;

/*
 * Takes out what is over: empty() is called for each place, and the rest is left to
 * quarantine_free(), without the lock.  NULL: nothing is.
 */
struct quarantined *quarantine_over(void (*empty)(uint64_t lo, uint64_t hi));
void quarantine_free(struct quarantined *q);

/* Is there anything?  Takes no lock. */
bool quarantine_any(void);

void quarantine_forked_child(void);

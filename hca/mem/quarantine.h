/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions that were deregistered while a stopped peer was in the middle of using mapped memory of
 * ours.  What it still does goes to the place in the arena where such a region was, which shows
 * nobody anything until the peer has moved or died; until then the place takes no other memory,
 * and the entry of the table of regions, of which the peer may have read one half, no other region.
 * Lock: that of share_state.h.
 */
#pragma once

#include "hca/obj/mr.h"
#include "hca/proc/quiesce.h"

/* Is there room for one more region of so many bytes? */
bool quarantine_room(uint64_t bytes);

/*
 * The entry of mr, whose key is gone, is kept from others until all of *late is over, whose
 * references it takes over; so is the place [mr->lo, mr->hi) of the arena (hca/mem/place.h) if
 * place.  False: no memory; then *late stays the caller's.
 */
bool quarantine_add(struct hca_mr *mr, struct late *late, bool place);

/* A forked child has none. */
void quarantine_forked_child(void);

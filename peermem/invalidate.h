/* SPDX-License-Identifier: BSD-3-Clause */
/* A client takes memory away. */
#pragma once

#include "peermem/region.h"

/*
 * The callback that clients get.  When it returns 0 nobody accesses the memory any more, but for
 * what runs in this very thread; the pages are given back, unless the client does that itself.  An
 * unknown context is counted, 0.  -EDEADLK inside the registration of that region, which then
 * fails; -ETIMEDOUT when others stayed inside it for 10 s.
 */
int peer_invalidate(void *reg_handle, u64 core_context);

/*
 * The client of r goes: as its callback, and then undoes all that is left to undo.  g, a callback
 * of this thread in r, leaves; afterwards r may be gone.  After 10 s what is left is forgotten.
 */
void peer_evict(struct peer_region *r, struct peer_guest *g);

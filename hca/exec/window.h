/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows as requests change them.  Whoever executes a queue may do so, in the segment of
 * the process that owns the window.
 */
#pragma once

#include "hca/exec/work.h"

/* How post_send packs a bind into a slot: raddr, range_len, rkey = the new one. */
static inline uint64_t bind_pack(uint32_t mw_rkey, unsigned access)
{
	return (uint64_t)access << 32 | mw_rkey;
}

/*
 * Binds the window that w->bind names (bind_pack()) to the region w->imm, or unbinds it if the
 * length is 0.  False: an HCA would refuse.  Doing it again after a death does no harm.
 */
bool window_bind(const struct work *w);

/*
 * Takes the key of a type 2 window of e's process away, for request pos of QP by_qpn.  False
 * if it is none, or of another protection domain.  The same request may do it again.
 */
bool window_invalidate(const struct end *e, uint32_t key, uint32_t by_qpn, uint32_t pos);

/* The same for a request that came to e: the window must belong to e. */
bool window_invalidate_remote(const struct end *e, uint32_t key, uint32_t by_qpn, uint32_t pos);

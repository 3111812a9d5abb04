/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parking: a requester that finds no receive posted sets a flag in the responder's QP and looks
 * once more; a responder that posted a receive looks at the flag.  Store, fence, load on both
 * sides: at least one of them sees the other.
 */
#pragma once

#include <stdbool.h>

#include "base/atomic.h"

/* Requester: parks.  It must check its condition again afterwards. */
static inline void park_set(_Atomic uint32_t *park)
{
	atomic_exchange_explicit(park, 1, memory_order_seq_cst);
	fence_after_rmw();
}

/* Requester: the condition holds after all. */
static inline void park_clear(_Atomic uint32_t *park)
{
	atomic_store_explicit(park, 0, memory_order_relaxed);
}

/*
 * Responder: publishes value in word, which makes a receive visible, and then tells whether a
 * requester is parked; if so the flag is cleared and the caller must go on with its work.
 */
static inline bool park_publish(_Atomic uint32_t *word, uint32_t value, _Atomic uint32_t *park)
{
	atomic_exchange_explicit(word, value, memory_order_seq_cst);
	fence_after_rmw();
	return atomic_load_explicit(park, memory_order_seq_cst) &&
	       atomic_exchange_explicit(park, 0, memory_order_seq_cst);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The armed word of a CQ: whether the next completion must wake somebody.  The consumer arms,
 * then polls once more; a producer pushes its ticket (a full fence), then looks here.  A
 * producer that finds FIRING fires as well: the one that set it may be stopped before its
 * write.  A spurious event is legal, a lost one is not.
 *
 *   bits 0..1   enum arm_state
 *   bits 2..31  counts arms, so that the end of one firing never ends a later one, whose
 *               producer may be stopped before its write
 */
#pragma once

#include <stdbool.h>

#include "base/atomic.h"

enum arm_state { ARM_IDLE, ARM_ANY, ARM_SOLICITED, ARM_FIRING };

#define ARM_STATE_MASK 3u
#define ARM_COUNT_ONE  4u

/* Consumer: arms for any completion, or only for solicited and failed ones. */
static inline void arm_set(_Atomic uint32_t *arm, bool solicited_only)
{
	uint32_t v = atomic_load_explicit(arm, memory_order_relaxed);
	uint32_t want;

	do {
		if (solicited_only && (v & ARM_STATE_MASK) == ARM_ANY)
			break;
		want = (v & ~ARM_STATE_MASK) + ARM_COUNT_ONE;
		want |= solicited_only ? ARM_SOLICITED : ARM_ANY;
	} while (!atomic_compare_exchange_weak_explicit(
		arm, &v, want, memory_order_seq_cst, memory_order_relaxed));
	fence_after_rmw();
}

/* Producer, after its push: would this completion fire? */
static inline bool arm_wants(_Atomic uint32_t *arm, bool solicited)
{
	uint32_t state = atomic_load_explicit(arm, memory_order_seq_cst) & ARM_STATE_MASK;

	return state != ARM_IDLE && (state != ARM_SOLICITED || solicited);
}

/*
 * Producer, after its push: not 0 if it must fire now; afterwards it passes the returned word to
 * arm_fired().  solicited: the completion is a solicited or a failed one.
 */
static inline uint32_t arm_must_fire(_Atomic uint32_t *arm, bool solicited)
{
	uint32_t v = atomic_load_explicit(arm, memory_order_seq_cst);

	for (;;) {
		uint32_t state = v & ARM_STATE_MASK;

		if (state == ARM_IDLE || (state == ARM_SOLICITED && !solicited))
			return 0;
		if (state == ARM_FIRING)
			return v;
		if (atomic_compare_exchange_weak_explicit(
			    arm, &v, v | ARM_FIRING, memory_order_seq_cst, memory_order_seq_cst))
			return v | ARM_FIRING;
	}
}

/* Producer, after the event was written: ends the firing, unless the CQ was armed since. */
static inline void arm_fired(_Atomic uint32_t *arm, uint32_t word)
{
	atomic_compare_exchange_strong_explicit(
		arm, &word, word & ~ARM_STATE_MASK, memory_order_seq_cst, memory_order_relaxed);
}

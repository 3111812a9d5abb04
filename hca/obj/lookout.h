/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a thread look for packets a moment before it sleeps for them?  It does as long as that is
 * worth it: to sleep and to be woken takes longer than most answers.  Each look in vain doubles how
 * often it then sleeps at once, so that who waits long, or for somebody on its own CPU, loses at
 * most a thousandth of its time.  All zero: a new one.  Any threads; no order is needed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/clock.h"

enum { LOOKOUT_SLEEPS_FIRST = 4, LOOKOUT_SLEEPS_MAX = 1024 };

static const uint64_t LOOKOUT_NS = 100 * NSEC_PER_USEC;

struct lookout {
	_Atomic uint32_t left;   /* so often it sleeps at once */
	_Atomic uint32_t sleeps; /* ... after the last look in vain; 0: that was none */
};

/* Is it worth it this time? */
static inline bool lookout_begins(struct lookout *l)
{
	uint32_t left = atomic_load_explicit(&l->left, memory_order_relaxed);

	if (left)
		atomic_store_explicit(&l->left, left - 1, memory_order_relaxed);
	return !left;
}

/* What came of it; saw: what it waited for came in time. */
static inline void lookout_ended(struct lookout *l, bool saw)
{
	uint32_t n = 2 * atomic_load_explicit(&l->sleeps, memory_order_relaxed);

	if (saw)
		n = 0;
	else if (!n)
		n = LOOKOUT_SLEEPS_FIRST;
	else if (n > LOOKOUT_SLEEPS_MAX)
		n = LOOKOUT_SLEEPS_MAX;
	atomic_store_explicit(&l->sleeps, n, memory_order_relaxed);
	atomic_store_explicit(&l->left, n, memory_order_relaxed);
}

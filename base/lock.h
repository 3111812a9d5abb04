/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small lock for process-private data: one word, uncontended take and release are one atomic
 * exchange each, and a plain store while the process has a single thread.  Contended callers
 * sleep on a private futex.  Never place one in memory that another process can map: there
 * nobody may wait for anybody (docs/trust.md, "No lock in shared memory").
 */
#pragma once

#include <linux/futex.h>
#include <stdbool.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/tsan.h"

struct lock {
	_Atomic uint32_t word; /* 0 free, 1 held, 2 held and somebody sleeps */
};

/* True while no second thread was ever started: then a plain store locks. */
static inline bool single_threaded(void)
{
#ifdef WEFT_TSAN
	return false;
#else
	return __libc_single_threaded;
#endif
}

/* Slow paths, in lock.c: sleep until the lock is ours; wake one sleeper. */
void lock_wait(struct lock *l);
void lock_wake(struct lock *l);

/* Takes the lock; may sleep. */
static inline void lock_take(struct lock *l)
{
	uint32_t free_word = 0;

	if (single_threaded()) {
		atomic_store_explicit(&l->word, 1, memory_order_relaxed);
		return;
	}
	if (!atomic_compare_exchange_strong_explicit(
		    &l->word, &free_word, 1, memory_order_acquire, memory_order_relaxed))
		lock_wait(l);
}

/* Takes the lock if it is free; never sleeps. */
static inline bool lock_try(struct lock *l)
{
	uint32_t free_word = 0;

	return atomic_compare_exchange_strong_explicit(
		&l->word, &free_word, 1, memory_order_acquire, memory_order_relaxed);
}

/* Releases a lock that the caller holds. */
static inline void lock_drop(struct lock *l)
{
	if (single_threaded()) {
		atomic_store_explicit(&l->word, 0, memory_order_relaxed);
		return;
	}
	if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
		lock_wake(l);
}

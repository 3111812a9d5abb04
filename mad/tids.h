/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which transactions of a umad file are in flight: a table that all who write to the file and weftd
 * map.  Who writes a MAD enters it, weftd strikes it out when the send has ended.  A second one
 * with the same id, class and kind is a duplicate.
 *
 * A bucket is a cache line of entries:
 *   bits  0..47  key: a hash of the transaction, never 0
 *   bits 48..63  who entered it: the number of its send ring, from 1
 *
 * Two processes that enter the same at the same moment may both be told of a duplicate.  Where a
 * bucket is full a transaction goes unlisted, and nobody finds its duplicates.
 */
#pragma once

#include <stdbool.h>

#include "base/atomic.h"
#include "base/hash.h"

enum {
#ifdef WEFT_MODEL
	TIDS_LOG_BUCKETS = 1,
	TIDS_BUCKET = 2,
#else
	TIDS_LOG_BUCKETS = 12,
	TIDS_BUCKET = CACHE_LINE / sizeof(uint64_t), /* entries */
#endif
	TIDS_LANE_SHIFT = 48,
};

#define TIDS_KEY_MASK ((1ull << TIDS_LANE_SHIFT) - 1)

struct tids {
	struct tids_bucket {
		_Alignas(CACHE_LINE) _Atomic uint64_t entry[TIDS_BUCKET];
	} bucket[1 << TIDS_LOG_BUCKETS];
};

enum tids_result { TIDS_ENTERED, TIDS_UNLISTED, TIDS_DUPLICATE };

/*
 * What a transaction is known by.  to: of a response a hash of where it goes, since two may have
 * the same id; of a request 0.
 */
static inline uint64_t tids_hash(uint64_t tid, uint8_t mgmt_class, bool response, uint64_t to)
{
	return hash_mix(hash_mix(tid) ^ to ^ (uint64_t)mgmt_class << 1 ^ response);
}

static inline struct tids_bucket *tids_bucket(struct tids *t, uint64_t hash)
{
	return &t->bucket[hash >> (64 - TIDS_LOG_BUCKETS)];
}

static inline uint64_t tids_entry(uint64_t hash, uint16_t lane)
{
	uint64_t key = hash & TIDS_KEY_MASK;

	return (key ? key : 1) | (uint64_t)lane << TIDS_LANE_SHIFT;
}

/* Where in the bucket that key is, but for place `except`; or TIDS_BUCKET. */
static inline unsigned tids_find(struct tids_bucket *b, uint64_t entry, unsigned except)
{
	for (unsigned i = 0; i < TIDS_BUCKET; i++) {
		uint64_t v = atomic_load_explicit(&b->entry[i], memory_order_seq_cst);

		if (i != except && !((v ^ entry) & TIDS_KEY_MASK))
			return i;
	}
	return TIDS_BUCKET;
}

/* Takes a free place of the bucket; TIDS_BUCKET: there is none. */
static inline unsigned tids_place(struct tids_bucket *b, uint64_t entry)
{
	for (unsigned i = 0; i < TIDS_BUCKET; i++) {
		uint64_t none = 0;

		if (!atomic_load_explicit(&b->entry[i], memory_order_relaxed) &&
			atomic_compare_exchange_strong_explicit(&b->entry[i], &none, entry,
				memory_order_seq_cst, memory_order_relaxed))
			return i;
	}
	return TIDS_BUCKET;
}

static inline bool tids_clear(struct tids_bucket *b, unsigned i, uint64_t entry)
{
	return atomic_compare_exchange_strong_explicit(
		&b->entry[i], &entry, 0, memory_order_seq_cst, memory_order_relaxed);
}

/* Enters a transaction, unless it is there. */
static inline enum tids_result tids_enter(struct tids *t, uint64_t hash, uint16_t lane)
{
	struct tids_bucket *b = tids_bucket(t, hash);
	uint64_t entry = tids_entry(hash, lane);
	unsigned i;

	if (tids_find(b, entry, TIDS_BUCKET) < TIDS_BUCKET)
		return TIDS_DUPLICATE;
	i = tids_place(b, entry);
	if (i == TIDS_BUCKET)
		return TIDS_UNLISTED;
	/* Another process's, entered since we looked: of two that do so one at least sees it. */
	fence_after_rmw();
	if (tids_find(b, entry, i) == TIDS_BUCKET)
		return TIDS_ENTERED;
	tids_clear(b, i, entry);
	return TIDS_DUPLICATE;
}

/* Strikes a transaction out; one that is not there is no error. */
static inline void tids_strike(struct tids *t, uint64_t hash, uint16_t lane)
{
	struct tids_bucket *b = tids_bucket(t, hash);
	uint64_t entry = tids_entry(hash, lane);

	for (unsigned i = 0; i < TIDS_BUCKET; i++)
		if (atomic_load_explicit(&b->entry[i], memory_order_relaxed) == entry &&
			tids_clear(b, i, entry))
			return;
}

/*
 * weftd, after the death of a process, whose send ring it has emptied: strikes out what that one
 * has entered but never sent.  sent(): is the transaction with that entry under way?
 */
static inline void tids_sweep(
	struct tids *t, uint16_t lane, bool (*sent)(void *arg, uint64_t entry), void *arg)
{
	for (unsigned n = 0; n < 1 << TIDS_LOG_BUCKETS; n++)
		for (unsigned i = 0; i < TIDS_BUCKET; i++) {
			struct tids_bucket *b = &t->bucket[n];
			uint64_t v = atomic_load_explicit(&b->entry[i], memory_order_relaxed);

			if (v && v >> TIDS_LANE_SHIFT == lane && !sent(arg, v))
				tids_clear(b, i, v);
		}
}

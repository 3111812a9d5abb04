/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of MADs in memory that several processes map, with one producer.
 *
 * The receive ring of a umad file has weftd as its producer, and as consumers all who have the
 * file.  How they take records, and hear that some have come, is in mad/bell.h.
 *
 * A send ring has one process as its producer, under a lock of that process's own, and weftd as
 * its consumer.  Its producer knocks, so that weftd looks.
 *
 * Each side has its own position, and the base and size of the ring, in memory of its own.  What
 * the other side writes is masked and compared; the worst that it brings about are records of
 * arbitrary contents, or a ring that is full, empty or RING_BROKEN.  Records are copied as atomic
 * words, since the other side may write while one reads.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/atomic.h"
#include "mad/umad_abi.h"

enum {
	UMAD_MAD_BYTES = 256,   /* of a record; MAD_SIZE */
	UMAD_RECORD_LONG = 1,   /* .flags: the message is longer; weftd lends it under .message */
	RING_TRIES = 1000,      /* losses in a row that one call puts up with */
	UMAD_RECV_LOG_SIZE = 9, /* records of a receive ring */
	UMAD_SEND_LOG_SIZE = 8,
};

/* A MAD with its header. */
struct umad_record {
#ifdef WEFT_MODEL
	uint64_t word[RING_MODEL_WORDS]; /* data cost states there */
#else
	struct umad_hdr hdr; /* the new layout, whatever the file has */
	uint8_t mad[UMAD_MAD_BYTES];
	uint32_t length; /* of the whole message, without the header */
	uint32_t flags;
	uint64_t message;
#endif
};

enum { RING_WORDS = sizeof(struct umad_record) / sizeof(uint64_t) };
_Static_assert(sizeof(struct umad_record) == RING_WORDS * sizeof(uint64_t), "whole words");

struct ring_slot {
	_Atomic uint64_t word[RING_WORDS];
};

/* Positions are compared by their lower 32 bits. */
struct ring_ends {
	_Alignas(CACHE_LINE) _Atomic uint64_t tail; /* the producer writes it */
	/* Consumers; of a receive ring the upper half is its bell. */
	_Alignas(CACHE_LINE) _Atomic uint64_t head;
};

struct ring_ref {
	struct ring_ends *ends;
	struct ring_slot *slots;
	uint32_t log_size; /* below 32 */
};

enum ring_result {
	RING_OK,
	RING_EMPTY,
	RING_COMING, /* the first record is there, but not yet the byte that says so */
	RING_FULL,
	RING_UNFIT,  /* the first record is what the caller will not take; it stays */
	RING_LOST,   /* others were faster each time: try again */
	RING_BROKEN, /* positions that no producer and no consumer writes */
};

static inline uint64_t ring_size(const struct ring_ref *r)
{
	return 1ull << r->log_size;
}

static inline struct ring_slot *ring_slot(const struct ring_ref *r, uint32_t pos)
{
	return &r->slots[pos & (ring_size(r) - 1)];
}

static inline uint32_t ring_head(const struct ring_ref *r)
{
	return (uint32_t)atomic_load_explicit(&r->ends->head, memory_order_acquire);
}

static inline uint32_t ring_tail(const struct ring_ref *r)
{
	return (uint32_t)atomic_load_explicit(&r->ends->tail, memory_order_acquire);
}

static inline void ring_store(struct ring_slot *s, const struct umad_record *rec)
{
	uint64_t word;

	for (unsigned i = 0; i < RING_WORDS; i++) {
		memcpy(&word, (const char *)rec + i * sizeof word, sizeof word);
		atomic_store_explicit(&s->word[i], word, memory_order_relaxed);
	}
}

static inline void ring_load(const struct ring_slot *s, struct umad_record *rec)
{
	uint64_t word;

	for (unsigned i = 0; i < RING_WORDS; i++) {
		word = atomic_load_explicit(&s->word[i], memory_order_relaxed);
		memcpy((char *)rec + i * sizeof word, &word, sizeof word);
	}
}

/* ---- the producer ---- */

/*
 * Appends a record; *tail is the producer's own position, 0 at first.  RING_OK: then the bell
 * (mad/bell.h); RING_FULL, RING_BROKEN.
 */
static inline enum ring_result ring_push(
	const struct ring_ref *r, uint64_t *tail, const struct umad_record *rec)
{
	uint32_t used = (uint32_t)*tail - ring_head(r);

	if (used >= ring_size(r))
		return used == ring_size(r) ? RING_FULL : RING_BROKEN;
	/* Who reads what follows sees the head, too, that made room for it. */
	atomic_thread_fence(memory_order_release);
	ring_store(ring_slot(r, (uint32_t)*tail), rec);
	atomic_store_explicit(&r->ends->tail, ++*tail, memory_order_release);
	return RING_OK;
}

/* True: no record is there that could be taken. */
static inline bool ring_is_empty(const struct ring_ref *r)
{
	return ring_head(r) == ring_tail(r);
}

/* ---- a send ring ---- */

/* weftd: takes the first record; *head is its own position, 0 at first.  RING_OK, _EMPTY, _BROKEN.
 */
static inline enum ring_result ring_pop(
	const struct ring_ref *r, uint64_t *head, struct umad_record *rec)
{
	uint32_t n = ring_tail(r) - (uint32_t)*head;

	if (!n)
		return RING_EMPTY;
	if (n > ring_size(r))
		return RING_BROKEN;
	ring_load(ring_slot(r, (uint32_t)*head), rec);
	atomic_store_explicit(&r->ends->head, ++*head, memory_order_release);
	return RING_OK;
}

/*
 * The producer of a send ring, after a push: true: it sends weftd a byte.  Each ring has a word of
 * its own for that, so that who is stopped or dies before it has sent its byte, or is hostile,
 * makes nobody else wait.
 */
static inline bool ring_knock(_Atomic uint32_t *knocked)
{
	/* The push, before the look at the word: weftd clears it, and then looks at the ring. */
	atomic_thread_fence(memory_order_seq_cst);
	return !atomic_load_explicit(knocked, memory_order_relaxed) &&
	       !atomic_exchange_explicit(knocked, 1, memory_order_seq_cst);
}

/* weftd, after it has taken all bytes from the socket, and before it looks at the ring. */
static inline void ring_heard(_Atomic uint32_t *knocked)
{
	atomic_exchange_explicit(knocked, 0, memory_order_seq_cst);
	fence_after_rmw();
}

/* ---- records that wait in weftd since a receive ring is full ---- */

/*
 * weftd, when it keeps records back: consumers tell it from now on when there is room.  True:
 * there is room already.
 */
static inline bool ring_hold(const struct ring_ref *r, _Atomic uint32_t *held, uint64_t tail)
{
	atomic_exchange_explicit(held, 1, memory_order_seq_cst);
	fence_after_rmw();
	return (uint32_t)tail - ring_head(r) < ring_size(r);
}

/* weftd, when it keeps none back any more. */
static inline void ring_release(_Atomic uint32_t *held)
{
	atomic_store_explicit(held, 0, memory_order_release);
}

/*
 * Consumer, after it has taken a record or found none, and before it takes a byte away: true: it
 * tells weftd, by a byte, that there is room.  Not after each record: at half, a quarter, ... of
 * the ring, and when it is empty.
 */
static inline bool ring_tells(const struct ring_ref *r, const _Atomic uint32_t *held)
{
	uint32_t n;

	fence_after_rmw();
	if (!atomic_load_explicit(held, memory_order_acquire))
		return false;
	n = ring_tail(r) - ring_head(r);
	return n <= ring_size(r) / 2 && !(n & (n - 1));
}

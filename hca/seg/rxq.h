/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive queue with several producers of completions: a shared one, or that of a UD QP.  Its
 * slots are a ring of positions.  The owner posts a free slot at the tail, whoever delivers takes
 * the one at the head by compare-and-swap, completes it and announces it by a ticket; the owner
 * frees it when the completion was polled.  Slots complete and are freed in any order: the owner
 * skips those that are not free, and so does who takes.  Nobody waits for anybody.
 *
 * The head is a hint.  What a dead process had taken goes back to a position before the head,
 * which then moves back too; a generation in its word keeps an older move from undoing that.
 *
 * State of a slot:
 *   bits  0..31  position at which it was posted
 *   bits 32..55  attach id of the process that takes it; in RXQ_DONE 0 once it is announced
 *   bits 56..57  enum rxq_state
 */
#pragma once

#include <stdbool.h>

#include "base/atomic.h"

enum rxq_state { RXQ_FREE, RXQ_POSTED, RXQ_TAKEN, RXQ_DONE };

#define RXQ_ATTACH_SHIFT 32
#define RXQ_STATE_SHIFT  56
#define RXQ_HEAD_GEN_ONE (1ull << 32)

/* The ring as a process sees it. */
struct rxq_ring {
	_Atomic uint64_t *head; /* bits 0..31 position, 32..63 generation */
	_Atomic uint32_t *tail;
	/* Executors: a tail that was read earlier; saves them the owner's line on most takes. */
	_Atomic uint32_t *tail_seen;
	uint8_t *slots; /* the state word of the first one */
	uint32_t stride, mask;
};

static inline uint64_t rxq_word(enum rxq_state state, uint32_t attach, uint32_t pos)
{
	return (uint64_t)state << RXQ_STATE_SHIFT |
	       (uint64_t)(attach & 0xffffff) << RXQ_ATTACH_SHIFT | pos;
}

static inline enum rxq_state rxq_state_of(uint64_t word)
{
	return word >> RXQ_STATE_SHIFT & 3;
}

static inline uint32_t rxq_attach_of(uint64_t word)
{
	return word >> RXQ_ATTACH_SHIFT & 0xffffff;
}

/*
 * Slots lie in the order of a Gray code.  At a constant distance from each other the CPU that
 * polls would learn it, and fetch the line of the next slot away from the one that is about to
 * fill it.
 */
static inline _Atomic uint64_t *rxq_slot(const struct rxq_ring *r, uint32_t pos)
{
	uint32_t i = pos & r->mask;

	return (_Atomic uint64_t *)(r->slots + (uint64_t)(i ^ i >> 1) * r->stride);
}

/* Is there anything between head and tail?  Perhaps only what others have taken. */
static inline bool rxq_has_more(const struct rxq_ring *r)
{
	uint32_t head = atomic_load_explicit(r->head, memory_order_acquire);

	return head != atomic_load_explicit(r->tail, memory_order_seq_cst);
}

/* True if nothing was posted at p; looks at the owner's line only when it must. */
static inline bool rxq_at_tail(const struct rxq_ring *r, uint32_t p)
{
	uint32_t tail = atomic_load_explicit(r->tail_seen, memory_order_acquire);

	if (tail - p - 1 <= r->mask)
		return false;
	tail = atomic_load_explicit(r->tail, memory_order_seq_cst);
	/* Who stores an older tail than is there costs others one more look, no more. */
	atomic_store_explicit(r->tail_seen, tail, memory_order_release);
	return p == tail;
}

/*
 * Takes the first posted slot for process attach; *pos is its position.  False: none is posted
 * (or the ring makes no sense: the search is bounded).
 */
static inline bool rxq_take(const struct rxq_ring *r, uint32_t attach, uint32_t *pos)
{
	for (uint32_t n = 0; n <= 2 * (r->mask + 1); n++) {
		uint64_t h = atomic_load_explicit(r->head, memory_order_seq_cst);
		uint32_t p = h;
		uint64_t next = (h & ~(RXQ_HEAD_GEN_ONE - 1)) | (uint32_t)(p + 1);
		uint64_t s = rxq_word(RXQ_POSTED, 0, p);

		if (rxq_at_tail(r, p))
			return false;
		if (atomic_compare_exchange_strong_explicit(rxq_slot(r, p), &s,
			    rxq_word(RXQ_TAKEN, attach, p), memory_order_seq_cst,
			    memory_order_seq_cst)) {
			atomic_compare_exchange_strong_explicit(
				r->head, &h, next, memory_order_seq_cst, memory_order_relaxed);
			*pos = p;
			return true;
		}
		/* Taken, done, or skipped by the owner: so is it for the next one. */
		atomic_compare_exchange_strong_explicit(
			r->head, &h, next, memory_order_seq_cst, memory_order_relaxed);
	}
	return false;
}

/* Moves the head back to pos, unless it is there already or before it. */
static inline void rxq_rewind(const struct rxq_ring *r, uint32_t pos)
{
	uint64_t h = atomic_load_explicit(r->head, memory_order_seq_cst);

	for (;;) {
		uint32_t to = (int32_t)((uint32_t)h - pos) > 0 ? pos : (uint32_t)h;
		uint64_t want = ((h & ~(RXQ_HEAD_GEN_ONE - 1)) + RXQ_HEAD_GEN_ONE) | to;

		if (atomic_compare_exchange_weak_explicit(
			    r->head, &h, want, memory_order_seq_cst, memory_order_seq_cst))
			return;
	}
}

/*
 * Gives back a slot that process attach has taken and not completed: it is the next to be taken.
 * For the taker itself, and for who knows that the taker is dead.  False if attach does not hold
 * it (any more).
 */
static inline bool rxq_untake(const struct rxq_ring *r, uint32_t index, uint32_t attach)
{
	uint32_t tail = atomic_load_explicit(r->tail, memory_order_seq_cst);
	_Atomic uint64_t *slot = rxq_slot(r, index);
	uint64_t s = atomic_load_explicit(slot, memory_order_seq_cst);
	/* Its last position before the tail, so that the way from there is one lap at most. */
	uint32_t pos = tail - 1 - ((tail - 1 - index) & r->mask);

	if (rxq_state_of(s) != RXQ_TAKEN || rxq_attach_of(s) != attach ||
		!atomic_compare_exchange_strong_explicit(slot, &s, rxq_word(RXQ_POSTED, 0, pos),
			memory_order_seq_cst, memory_order_seq_cst))
		return false;
	rxq_rewind(r, pos);
	return true;
}

/*
 * A slot that went back to a position before the head, whose head nobody moved since (who gave it
 * back died): moves it.
 */
static inline void rxq_refind(const struct rxq_ring *r, uint32_t index)
{
	uint64_t s = atomic_load_explicit(rxq_slot(r, index), memory_order_seq_cst);
	uint32_t head = atomic_load_explicit(r->head, memory_order_seq_cst);

	if (rxq_state_of(s) == RXQ_POSTED && (int32_t)((uint32_t)s - head) < 0)
		rxq_rewind(r, s);
}

/*
 * The taker: the completion is written.  False if the slot was taken back, by somebody who
 * thinks that we are dead.
 */
static inline bool rxq_done(const struct rxq_ring *r, uint32_t pos, uint32_t attach)
{
	uint64_t s = rxq_word(RXQ_TAKEN, attach, pos);

	return atomic_compare_exchange_strong_explicit(rxq_slot(r, pos), &s,
		rxq_word(RXQ_DONE, attach, pos), memory_order_seq_cst, memory_order_relaxed);
}

/* The taker: its ticket is pushed.  The owner may have freed the slot already. */
static inline void rxq_announced(const struct rxq_ring *r, uint32_t pos, uint32_t attach)
{
	uint64_t s = rxq_word(RXQ_DONE, attach, pos);

	atomic_compare_exchange_strong_explicit(rxq_slot(r, pos), &s, rxq_word(RXQ_DONE, 0, pos),
		memory_order_release, memory_order_relaxed);
}

/*
 * The owner, who serialises posting: the first position from tail on whose slot is free, or
 * false.  Its contents may then be written.
 */
static inline bool rxq_find_free(const struct rxq_ring *r, uint32_t tail, uint32_t *pos)
{
	for (uint32_t n = 0; n <= r->mask; n++) {
		uint64_t s = atomic_load_explicit(rxq_slot(r, tail + n), memory_order_acquire);

		if (rxq_state_of(s) != RXQ_FREE)
			continue;
		*pos = tail + n;
		return true;
	}
	return false;
}

/* The owner: makes the slot at pos visible; the tail is then to be published as pos + 1. */
static inline void rxq_post(const struct rxq_ring *r, uint32_t pos)
{
	atomic_store_explicit(rxq_slot(r, pos), rxq_word(RXQ_POSTED, 0, pos), memory_order_release);
}

/* The owner: the completion was taken. */
static inline void rxq_free(const struct rxq_ring *r, uint32_t index)
{
	atomic_store_explicit(rxq_slot(r, index), 0, memory_order_release);
}

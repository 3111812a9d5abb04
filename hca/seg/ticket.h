/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue as a ring of tickets.  A producer writes the completion itself into the
 * work queue slot that it completes (it is that queue's only producer, by the token) and then
 * pushes a ticket that names the queue.  Nothing is reserved before it is published, and any
 * producer can finish another's half-done push, so that a producer that was stopped or died at
 * any instruction delays nobody.  FIFO across all queues of the CQ.
 *
 *   bits  0..23  index of the QP in its process; bit 23 is 0 (but see ticket_make_rxq())
 *   bit  24      1 = receive queue, 0 = send queue
 *   bits 25..38  generation of the QP: tickets of an older one are dropped
 *   bit  39      1, so that no ticket is 0, not even on lap 0
 *   bit  40      1 = the completion is a solicited or a failed one
 *   bits 41..63  lap of the ring, from 1; it wraps
 *
 * Surplus tickets are legal: the consumer drops one for which its queue has no completion.
 */
#pragma once

#include <stdbool.h>

#include "base/atomic.h"

enum {
	TICKET_SHARED = 1 << 23,
	TICKET_RECV = 1 << 24,
	TICKET_GEN_SHIFT = 25,
	TICKET_GEN_MASK = 0x3fff,
	TICKET_LAP_SHIFT = 41,
	TICKET_LAP_MASK = 0x7fffff,
};

#define TICKET_PRESENT   (1ull << 39)
#define TICKET_SOLICITED (1ull << 40)

struct ticket_ring {
	_Alignas(CACHE_LINE) _Atomic uint64_t tail; /* producers */
	/* Producers: a head that was read earlier; saves them the consumer's line on most pushes.
	 */
	_Atomic uint64_t head_seen;
	_Alignas(CACHE_LINE) _Atomic uint64_t head; /* the consumer */
};

static inline uint64_t ticket_lap(uint64_t pos, uint32_t log_size)
{
	return ((pos >> log_size) + 1) & TICKET_LAP_MASK;
}

/* What to push for one completion of that queue; the lap is added by ticket_push(). */
static inline uint64_t ticket_make(uint32_t qp, bool recv, uint32_t gen)
{
	return TICKET_PRESENT | (uint64_t)(gen & TICKET_GEN_MASK) << TICKET_GEN_SHIFT |
	       (recv ? TICKET_RECV : 0) | (qp & (TICKET_RECV - 1));
}

/*
 * What to push for a receive of a queue with several producers (hca/seg/rxq.h): its entry's index
 * in bits 0..16, bit 23 set, and in 17..22 and 25..38 the low 20 bits of the position: the slot, in
 * a ring of any size, and above it at least 5 bits of the lap, so that a surplus ticket is not
 * taken for a later one.
 */
static inline uint64_t ticket_make_rxq(uint32_t index, uint32_t pos)
{
	return ticket_make(TICKET_SHARED | (pos >> 14 & 63) << 17 | (index & 0x1ffff), true, pos);
}

static inline bool ticket_is_rxq(uint64_t t)
{
	return t & TICKET_SHARED;
}

/* Of a shared ticket: the entry, and what must match the position. */
static inline uint32_t ticket_entry(uint64_t t)
{
	return t & 0x1ffff;
}

static inline uint32_t ticket_rxq_bits(uint64_t t)
{
	return (t >> TICKET_GEN_SHIFT & TICKET_GEN_MASK) | (t >> 17 & 63) << 14;
}

/* True if pos is the position that the ticket was made for. */
static inline bool ticket_of_pos(uint64_t t, uint32_t pos)
{
	return ticket_rxq_bits(t) == (pos & 0xfffff);
}

static inline uint32_t ticket_qp(uint64_t t)
{
	return t & (TICKET_RECV - 1);
}

static inline bool ticket_is_recv(uint64_t t)
{
	return t & TICKET_RECV;
}

static inline uint32_t ticket_gen(uint64_t t)
{
	return t >> TICKET_GEN_SHIFT & TICKET_GEN_MASK;
}

/* True if the ring is full for position t; looks at the consumer's line only when it must. */
static inline bool ticket_full(struct ticket_ring *r, uint64_t t, uint32_t limit)
{
	uint64_t head = atomic_load_explicit(&r->head_seen, memory_order_acquire);

	if ((int64_t)(t - head) < (int64_t)limit)
		return false;
	head = atomic_load_explicit(&r->head, memory_order_acquire);
	/* Who stores an older head than is there costs others one more look, no more. */
	atomic_store_explicit(&r->head_seen, head, memory_order_release);
	return (int64_t)(t - head) >= (int64_t)limit;
}

/*
 * Pushes a ticket.  log_size: of the slots; limit: how many tickets may be outstanding, at most
 * the ring's size.  False if the ring is full, or
 * makes no sense.  Lock-free; a full fence lies behind success.
 */
static inline bool ticket_push(struct ticket_ring *r, _Atomic uint64_t *slots, uint32_t log_size,
	uint32_t limit, uint64_t ticket)
{
	uint64_t mask = (1ull << log_size) - 1;

	for (;;) {
		uint64_t t = atomic_load_explicit(&r->tail, memory_order_acquire);
		uint64_t s = atomic_load_explicit(&slots[t & mask], memory_order_acquire);
		uint64_t lap = ticket_lap(t, log_size);

		if (s >> TICKET_LAP_SHIFT == lap) { /* published, tail not yet moved: help */
			atomic_compare_exchange_strong_explicit(
				&r->tail, &t, t + 1, memory_order_seq_cst, memory_order_relaxed);
			continue;
		}
		/* A tail that moved since is stale: neither fullness nor the slot mean anything. */
		if (atomic_load_explicit(&r->tail, memory_order_relaxed) != t)
			continue;
		if (ticket_full(r, t, limit))
			return false;
		/* Neither published nor free at this tail: somebody destroyed the ring. */
		if (s >> TICKET_LAP_SHIFT != ((lap - 1) & TICKET_LAP_MASK))
			return false;
		if (!atomic_compare_exchange_strong_explicit(&slots[t & mask], &s,
			    ticket | lap << TICKET_LAP_SHIFT, memory_order_seq_cst,
			    memory_order_relaxed))
			continue;
		atomic_compare_exchange_strong_explicit(
			&r->tail, &t, t + 1, memory_order_seq_cst, memory_order_relaxed);
		fence_after_rmw();
		return true;
	}
}

/*
 * Consumer: the ticket at position pos, or 0 if it is not there yet.  The caller serialises
 * consumers and moves r->head itself, by ticket_advance(), once it has taken the ticket.
 */
static inline uint64_t ticket_peek(_Atomic uint64_t *slots, uint32_t log_size, uint64_t pos)
{
	uint64_t s =
		atomic_load_explicit(&slots[pos & ((1ull << log_size) - 1)], memory_order_acquire);

	return s >> TICKET_LAP_SHIFT == ticket_lap(pos, log_size) ? s : 0;
}

/*
 * Consumer: gives slots below pos back to the producers.  The head may pass the tail by one, when
 * the producer of a consumed ticket has not yet moved the tail; the next producer does.
 */
static inline void ticket_advance(struct ticket_ring *r, uint64_t pos)
{
	atomic_store_explicit(&r->head, pos, memory_order_release);
}

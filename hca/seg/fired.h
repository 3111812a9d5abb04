/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which CQs of a completion channel fired, in the order in which they did: per channel a ring of
 * tickets (hca/seg/ticket.h), so that nobody waits for a producer that was stopped or died.  A
 * producer counts the event at its CQ (fired), puts an entry into the ring, writes the channel's
 * fd, and says so (told).  The owner takes one count from the fd for each event that it gives out.
 *
 * The ring is a hint about the order.  What counts is fired: a CQ with more events than the program
 * has got is found by a look at all of them when the ring has no entry for a count (its producer
 * was stopped before it, or the ring was full).  A count may be spent on the event of a producer
 * that is stopped before its own write: then the owner writes one more, if there is more to get,
 * and there is one count too many when that producer goes on, which is legal.
 *
 *   bits 0..16   index of the CQ in its process
 *   bits 17..38  number of the event, as fired counts them: the entry of one that was found
 *                without it is known for that
 */
#pragma once

#include "hca/seg/ticket.h"

enum { FIRED_NUMBER_SHIFT = 17, FIRED_NUMBER_MASK = 0x3fffff };

struct fired_ref {
	struct ticket_ring *ring;
	_Atomic uint64_t *slots;
	uint32_t log_size;
	_Atomic uint32_t *overflow; /* an entry did not fit: look at all CQs */
};

/* The owner's side, under the lock of its channel. */
struct fired_reader {
	uint64_t head;
	bool sweeps; /* after an overflow: all CQs are looked at in turn, until none has an event */
	bool owes;   /* an event was given out whose count may not have come */
};

static inline uint64_t fired_entry(uint32_t cq, uint32_t number)
{
	return TICKET_PRESENT | (uint64_t)(number & FIRED_NUMBER_MASK) << FIRED_NUMBER_SHIFT | cq;
}

static inline uint32_t fired_cq(uint64_t entry)
{
	return entry & ((1u << FIRED_NUMBER_SHIFT) - 1);
}

/* Is the entry about an event beyond the `seen` that the program has got? */
static inline bool fired_is_due(uint64_t entry, uint32_t seen)
{
	uint32_t ahead = ((uint32_t)(entry >> FIRED_NUMBER_SHIFT) - seen) & FIRED_NUMBER_MASK;

	return ahead && ahead <= FIRED_NUMBER_MASK / 2;
}

/* Producer: an event more of the CQ; after that it writes the fd, and then counts it as told. */
static inline void fired_put(const struct fired_ref *r, uint32_t cq, _Atomic uint32_t *fired)
{
	uint32_t number = atomic_fetch_add_explicit(fired, 1, memory_order_release) + 1;

	if (!ticket_push(
		    r->ring, r->slots, r->log_size, 1u << r->log_size, fired_entry(cq, number)))
		atomic_store_explicit(r->overflow, 1, memory_order_seq_cst);
}

/* Owner: the next entry, or 0: there is none, or all CQs are to be looked at first. */
static inline uint64_t fired_pop(const struct fired_ref *r, struct fired_reader *o)
{
	uint64_t entry;

	if (atomic_load_explicit(r->overflow, memory_order_acquire)) {
		atomic_store_explicit(r->overflow, 0, memory_order_seq_cst);
		o->sweeps = true;
	}
	entry = o->sweeps ? 0 : ticket_peek(r->slots, r->log_size, o->head);
	if (entry)
		ticket_advance(r->ring, ++o->head);
	return entry;
}

/* Owner: may there be more to get?  Who wrote the fd is seen here. */
static inline bool fired_more(const struct fired_ref *r, const struct fired_reader *o)
{
	return o->sweeps || atomic_load_explicit(r->overflow, memory_order_acquire) ||
	       ticket_peek(r->slots, r->log_size, o->head);
}

/* Owner: gives out an event of the CQ, the `seen`-th. */
static inline void fired_give(struct fired_reader *o, const _Atomic uint32_t *told, uint32_t seen)
{
	if ((int32_t)(seen - atomic_load_explicit(told, memory_order_acquire)) > 0)
		o->owes = true;
}

/*
 * Owner, after each event: must it write the fd once more?  readable: a count is left.
 */
static inline bool fired_owes(const struct fired_ref *r, struct fired_reader *o, bool readable)
{
	if (!o->owes || readable)
		return false;
	o->owes = fired_more(r, o);
	return o->owes;
}

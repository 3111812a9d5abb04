/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which CQs of a completion channel fired, in the order in which they did: per channel a ring of
 * tickets (hca/seg/ticket.h), so that nobody waits for a producer that was stopped or died.  A
 * producer counts the event at its CQ (fired), puts an entry into the ring, writes the channel's
 * fd, and says so (told).  The owner takes one count from the fd for each event that it gives out,
 * and says which (given).  So there are never more counts than events.
 *
 * The ring is a hint about the order.  What counts is fired: a CQ with more events than the program
 * has got is found by a look at all of them when the ring has no entry for a count (the ring was
 * full).
 *
 * Whose a count is nobody knows.  The owner gives out the oldest event that is told, so that a
 * producer which was stopped before its write holds up nobody.  If none is told, the count is of
 * one that wrote just now; of several the owner gives out the oldest, and if that one's is still to
 * come, another event waits for it, which is told in an instant.  The owner cannot tell this from a
 * producer that was stopped for long: it asks for a look some time later, by weftd, which writes
 * the fd if events wait behind one that cannot be read.  Then there is a count too many when that
 * producer goes on.
 *
 *   bits 0..16   index of the CQ in its process
 *   bits 17..38  number of the event, as fired counts them: the entry of one that was found
 *                without it is known for that
 */
#pragma once

#include "base/clock.h"
#include "hca/seg/ticket.h"

enum { FIRED_NUMBER_SHIFT = 17, FIRED_NUMBER_MASK = 0x3fffff };

struct fired_ref {
	struct ticket_ring *ring;
	_Atomic uint64_t *slots;
	uint32_t log_size;
	_Atomic uint32_t *overflow; /* an entry did not fit: look at all CQs */
};

/* An event more of a CQ, for its producer. */
struct fired_note {
	struct fired_ref order;
	uint32_t cq;
	_Atomic uint32_t *fired;
	bool entered;
};

/* The owner's side, under the lock of its channel. */
struct fired_reader {
	uint64_t head;
	bool sweeps; /* after an overflow: all CQs are looked at in turn, until none has an event */
	uint32_t passed; /* events given out in a row that the oldest entry was not told for */
};

/* Entries that are looked at for one that is told; and how often an older one may be passed. */
enum { FIRED_LOOK = 16, FIRED_PASSED_MAX = 16 };
/* After so long a producer that has not told is taken for one that was stopped. */
#define FIRED_DOUBT_NS (20 * (uint64_t)NSEC_PER_MSEC)

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

/*
 * Producer: right before it writes the fd, once; after that it counts the event as told.  NULL:
 * there is nothing to enter.
 */
static inline void fired_enter(struct fired_note *n)
{
	const struct fired_ref *r;
	uint32_t number;

	if (!n || n->entered)
		return;
	n->entered = true;
	r = &n->order;
	number = atomic_fetch_add_explicit(n->fired, 1, memory_order_release) + 1;
	if (!ticket_push(
		    r->ring, r->slots, r->log_size, 1u << r->log_size, fired_entry(n->cq, number)))
		atomic_store_explicit(r->overflow, 1, memory_order_seq_cst);
}

/* Owner, first: did an entry not fit since?  Then all CQs are looked at. */
static inline void fired_begin(const struct fired_ref *r, struct fired_reader *o)
{
	if (!atomic_load_explicit(r->overflow, memory_order_acquire))
		return;
	atomic_store_explicit(r->overflow, 0, memory_order_seq_cst);
	o->sweeps = true;
}

/* Owner: entry number i from the oldest on; 0: there is none, or all CQs are looked at. */
static inline uint64_t fired_peek(
	const struct fired_ref *r, const struct fired_reader *o, uint32_t i)
{
	return o->sweeps ? 0 : ticket_peek(r->slots, r->log_size, o->head + i);
}

/* Owner: the oldest entry is of no use. */
static inline void fired_drop(const struct fired_ref *r, struct fired_reader *o)
{
	ticket_advance(r->ring, ++o->head);
}

/* Owner: may there be more to get?  Who wrote the fd is seen here. */
static inline bool fired_more(const struct fired_ref *r, const struct fired_reader *o)
{
	return o->sweeps || atomic_load_explicit(r->overflow, memory_order_acquire) ||
	       ticket_peek(r->slots, r->log_size, o->head);
}

/* How many events lie between two of fired, told and given: 0 if `of` is not ahead. */
static inline uint32_t fired_ahead(uint32_t of, uint32_t than)
{
	return (int32_t)(of - than) > 0 ? of - than : 0;
}

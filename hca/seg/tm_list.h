/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of tags of an SRQ that matches them: receives (hca/seg/rxq.h) that are taken by the
 * first in the order of posting whose tag fits, not from a head.  Every process that sends to the
 * SRQ searches it.
 *
 * One word, in the place of the head, orders what the owner does and what senders find:
 *   bits  0..31  version: counts additions, and when receives that were kept apart join
 *   bits 32..63  messages whose tag was in no receive: they went to an untagged one
 * A receive is in the list from the version after `since` on.  A sender that finds no match counts
 * its message by a compare-and-swap from the word that it read before it searched: if anything was
 * added meanwhile that fails, and it searches again.  So a receive that the owner adds while the
 * count is what the program has dealt with comes after all messages that were counted.
 */
#pragma once

#include "hca/seg/view.h"

#define TM_UNEXPECTED_ONE (1ull << 32)

enum { TM_TRIES = 1024 };

/* seg_rxq_slot.apart: unexpected messages come before the receive; it joins the list now, perhaps.
 */
enum { TM_APART = 1, TM_JOINS = 2 };

static inline uint64_t tm_word(const struct rxq_ref *l)
{
	return atomic_load_explicit(l->ring.head, memory_order_seq_cst);
}

/* Is the receive one of the list as it was when word was read? */
static inline bool tm_listed(const struct seg_rxq_slot *s, uint64_t word)
{
	if (atomic_load_explicit(&s->apart, memory_order_acquire) == TM_APART)
		return false;
	return (int32_t)(atomic_load_explicit(&s->since, memory_order_relaxed) - (uint32_t)word) <
	       0;
}

/* The state of the first receive of the list that takes tag, or 0. */
static inline uint64_t tm_search(const struct rxq_ref *l, uint64_t tag, uint64_t word)
{
	uint64_t best = 0;

	for (uint32_t i = 0; i <= l->ring.mask; i++) {
		const struct seg_rxq_slot *s = rxq_at(l, i);
		uint64_t state = atomic_load_explicit(&s->rqe.state, memory_order_acquire);

		if (rxq_state_of(state) == RXQ_POSTED && tm_listed(s, word) &&
			(tag & s->mask) == s->tag &&
			(!best || (int32_t)((uint32_t)state - (uint32_t)best) < 0))
			best = state;
	}
	return best;
}

/*
 * Takes the first receive for that tag for process attach; *pos is its position.  False: there was
 * none when *word was read.
 */
static inline bool tm_take(
	const struct rxq_ref *l, uint64_t tag, uint32_t attach, uint32_t *pos, uint64_t *word)
{
	for (unsigned n = 0; n < TM_TRIES; n++) {
		uint64_t state;

		*word = tm_word(l);
		state = tm_search(l, tag, *word);
		if (!state)
			return false;
		*pos = state;
		if (atomic_compare_exchange_strong_explicit(rxq_slot(&l->ring, *pos), &state,
			    rxq_word(RXQ_TAKEN, attach, *pos), memory_order_seq_cst,
			    memory_order_relaxed))
			return true;
	}
	return false; /* its owner scribbles */
}

/* Gives it back: for the taker, and for who knows that the taker is dead. */
static inline bool tm_untake(const struct rxq_ref *l, uint32_t pos, uint32_t attach)
{
	uint64_t s = rxq_word(RXQ_TAKEN, attach, pos);

	return atomic_compare_exchange_strong_explicit(rxq_slot(&l->ring, pos), &s,
		rxq_word(RXQ_POSTED, 0, pos), memory_order_seq_cst, memory_order_relaxed);
}

/* Counts a message that matched nothing in word.  False: the list has changed since. */
static inline bool tm_count_unexpected(const struct rxq_ref *l, uint64_t word)
{
	uint32_t version = word;

	for (unsigned n = 0; (uint32_t)word == version && n < TM_TRIES; n++)
		if (atomic_compare_exchange_weak_explicit(l->ring.head, &word,
			    word + TM_UNEXPECTED_ONE, memory_order_seq_cst, memory_order_seq_cst))
			return true;
	return false;
}

/* The owner: takes a receive out that nobody has taken.  False: somebody has. */
static inline bool tm_withdraw(const struct rxq_ref *l, uint32_t pos)
{
	uint64_t s = rxq_word(RXQ_POSTED, 0, pos);

	return atomic_compare_exchange_strong_explicit(
		rxq_slot(&l->ring, pos), &s, 0, memory_order_seq_cst, memory_order_relaxed);
}

/* The owner: moves the version on, if the word is still what it was.  False: *word is the new one.
 */
static inline bool tm_step(const struct rxq_ref *l, uint64_t *word)
{
	uint64_t next = (*word & ~(TM_UNEXPECTED_ONE - 1)) | (uint32_t)(*word + 1);

	return atomic_compare_exchange_strong_explicit(
		l->ring.head, word, next, memory_order_seq_cst, memory_order_seq_cst);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token: one word per direction of a QP pair, kept in the requester's QP, that says who
 * executes its send queue right now.  It is taken by compare-and-swap and nobody ever waits for
 * it: who finds it taken leaves a kick, and the holder looks at the queue once more before it
 * lets go.  A holder that died is replaced by force (weftd); its unfinished work request is
 * executed again by the next holder, which the commit order of hca/exec/exec.c makes harmless.
 *
 *   bits  0..23  attach id of the holder, 0 = free
 *   bits 24..35  exec slot of the holder
 *   bit  36      kick: work was added while somebody held the token
 *   bits 37..63  generation, counts releases
 */
#pragma once

#include <stdbool.h>

#include "base/atomic.h"

enum {
	TOKEN_ATTACH_BITS = 24,
	TOKEN_SLOT_BITS = 12,
};

#define TOKEN_OWNER_MASK ((1ull << (TOKEN_ATTACH_BITS + TOKEN_SLOT_BITS)) - 1)
#define TOKEN_KICK       (1ull << (TOKEN_ATTACH_BITS + TOKEN_SLOT_BITS))
#define TOKEN_GEN_ONE    (TOKEN_KICK << 1)
#define TOKEN_GEN_MASK   (~(TOKEN_KICK | TOKEN_OWNER_MASK))

enum token_drop_result {
	TOKEN_DROPPED, /* the token is free */
	TOKEN_KICKED,  /* still ours: somebody added work, look again */
	TOKEN_LOST,    /* it was taken from us by force; touch nothing more */
};

/* The owner part of a token word for a thread of process attach that uses exec slot slot. */
static inline uint64_t token_owner(uint32_t attach, uint32_t slot)
{
	return (uint64_t)slot << TOKEN_ATTACH_BITS | attach;
}

/* The attach id in a token word, 0 if it is free. */
static inline uint32_t token_attach(uint64_t word)
{
	return word & ((1u << TOKEN_ATTACH_BITS) - 1);
}

/*
 * Takes the token for owner, or leaves a kick with whoever holds it.  True if it is ours.  Both
 * outcomes are a read-modify-write of the word, so that what the caller published before is
 * visible to the holder that meets the kick.
 */
static inline bool token_take(_Atomic uint64_t *tok, uint64_t owner)
{
	uint64_t v = atomic_load_explicit(tok, memory_order_relaxed);

	for (;;) {
		bool is_free = !(v & TOKEN_OWNER_MASK);
		uint64_t want = is_free ? v | owner : v | TOKEN_KICK;

		if (atomic_compare_exchange_weak_explicit(
			    tok, &v, want, memory_order_seq_cst, memory_order_relaxed)) {
			fence_after_rmw();
			return is_free;
		}
	}
}

/* Lets go of the token, unless somebody kicked: then the kick is consumed and it stays ours. */
static inline enum token_drop_result token_drop(_Atomic uint64_t *tok, uint64_t owner)
{
	uint64_t v = atomic_load_explicit(tok, memory_order_relaxed);

	for (;;) {
		uint64_t want;

		if ((v & TOKEN_OWNER_MASK) != owner)
			return TOKEN_LOST;
		if (v & TOKEN_KICK)
			want = v & ~TOKEN_KICK;
		else
			want = (v & TOKEN_GEN_MASK) + TOKEN_GEN_ONE;
		if (atomic_compare_exchange_weak_explicit(
			    tok, &v, want, memory_order_seq_cst, memory_order_relaxed)) {
			fence_after_rmw();
			return v & TOKEN_KICK ? TOKEN_KICKED : TOKEN_DROPPED;
		}
	}
}

/*
 * Frees a token whose holder, process attach, is dead.  True if that process held it: then the
 * caller must see to it that the queue is looked at again.
 */
static inline bool token_force(_Atomic uint64_t *tok, uint32_t attach)
{
	uint64_t v = atomic_load_explicit(tok, memory_order_relaxed);

	while (attach && token_attach(v) == attach) {
		uint64_t want = (v & TOKEN_GEN_MASK) + TOKEN_GEN_ONE;

		if (atomic_compare_exchange_weak_explicit(
			    tok, &v, want, memory_order_seq_cst, memory_order_relaxed))
			return true;
	}
	return false;
}

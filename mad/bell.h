/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a ring of MADs has something to be read, a byte lies in a socket.  The bell is the word that
 * says whether, so that neither side asks the kernel for each MAD.
 *
 *   bits  0..1   enum bell_state
 *   bits  2..31  number of the ringing, so that none is taken for another
 *   bits 32..63  BELL_TAKEN: the consumer process that is about to take the byte
 *
 * Of a receive ring programs poll that socket: the byte is there exactly while there is something
 * to be read, but for moments in which a consumer is between two steps.  A consumer that finds the
 * ring empty claims the byte, looks at the ring once more, and takes the byte or leaves it.  The
 * producer, weftd, never waits for that: it rings anew, with a byte more.  The one whose claim it
 * overrode takes one of the two away and then says so (settled).  Nobody claims a byte that is
 * still on its way (BELL_RINGING): else one takes another's, and that one's is left over.
 *
 * A consumer that died with a claim may have left its byte behind, which nobody knows: a ghost.
 * weftd, which knows whom it overrode and who settled that, waits for a moment when there ought to
 * be no byte, asks the kernel, and counts a byte that is there as that of a new ringing.
 *
 * Of a send ring weftd is the consumer, alone: it takes all bytes, silences the bells and looks at
 * the rings, in that order, so that no surplus or missing byte, of a process that was stopped
 * between two steps or is hostile, makes another one wait.  A send ring has its own bell, for the
 * same reason; the socket is one for all of a file.
 */
#pragma once

#include <stdbool.h>

#include "base/atomic.h"

enum bell_state { BELL_SILENT, BELL_RUNG, BELL_TAKEN, BELL_RINGING };

#define BELL_STATE_MASK  3u
#define BELL_NUMBER_ONE  4u
#define BELL_NUMBER_MASK 0xfffffffcu

static inline enum bell_state bell_state(uint64_t word)
{
	return word & BELL_STATE_MASK;
}

/* Who has claimed the byte, from 1; 0: nobody.  As a consumer wrote it: not to be believed. */
static inline uint32_t bell_claimer(uint64_t word)
{
	return bell_state(word) == BELL_TAKEN ? word >> 32 : 0;
}

/* ---- the producer ---- */

struct bell_producer {
	_Atomic uint64_t *bell;
	uint32_t number;         /* of the last ringing, in place */
	void (*send)(void *arg); /* sends a byte, and blocks never: if there is no room, some lie
				    there */
	void *arg;
};

/* After a push.  The consumer whose claim it overrode, or 0. */
static inline uint32_t bell_ring(struct bell_producer *p)
{
	uint64_t old, ringing;

	/* The push, before the look at the bell: see bell_claim(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (bell_state(atomic_load_explicit(p->bell, memory_order_relaxed)) == BELL_RUNG)
		return 0;
	p->number += BELL_NUMBER_ONE;
	ringing = p->number | BELL_RINGING;
	old = atomic_exchange_explicit(p->bell, ringing, memory_order_seq_cst);
	if (bell_state(old) != BELL_RUNG)
		p->send(p->arg);
	/* Unless weftd has silenced it already. */
	atomic_compare_exchange_strong_explicit(p->bell, &ringing, p->number | BELL_RUNG,
		memory_order_seq_cst, memory_order_relaxed);
	return bell_claimer(old);
}

/*
 * weftd, when consumer process who is dead: its claim is overridden, as bell_ring() does it.  If
 * then, or before, its claims were overridden more often than it settled, there may be a ghost.
 */
static inline uint32_t bell_bury(struct bell_producer *p, uint32_t who)
{
	uint64_t word = atomic_load_explicit(p->bell, memory_order_acquire);

	return bell_claimer(word) == who ? bell_ring(p) : 0;
}

/*
 * weftd, while there may be a ghost and all living consumers have settled: true: there is none any
 * more; else ask again later, at the latest before the next ringing.  bytes(): do any lie in the
 * socket?
 */
static inline bool bell_exorcise(struct bell_producer *p, bool (*bytes)(void *arg))
{
	uint64_t word = atomic_load_explicit(p->bell, memory_order_acquire);

	/* Silent: only we change it, and nobody who lives takes a byte. */
	if (bell_state(word) != BELL_SILENT)
		return false;
	if (bytes(p->arg)) {
		p->number += BELL_NUMBER_ONE;
		atomic_store_explicit(p->bell, p->number | BELL_RUNG, memory_order_seq_cst);
	}
	return true;
}

/* ---- consumers of a receive ring ---- */

/* What bell_quiet() needs; none of them blocks. */
struct bell_consumer {
	uint32_t who;              /* this process, from 1 */
	_Atomic uint32_t *settled; /* this process's count of claims that were overridden */
	bool (*more)(void *arg);   /* is something to be read? */
	bool (*take)(void *arg);   /* takes one byte from the socket; false: there is none */
	void *arg;
};

/* Claims the byte; *claim is the word then.  False: it is not there, or others see to it. */
static inline bool bell_claim(_Atomic uint64_t *bell, uint32_t who, uint64_t *claim)
{
	uint64_t word = atomic_load_explicit(bell, memory_order_relaxed);

	if (bell_state(word) != BELL_RUNG)
		return false;
	*claim = (uint64_t)who << 32 | (word & BELL_NUMBER_MASK) | BELL_TAKEN;
	if (!atomic_compare_exchange_strong_explicit(
		    bell, &word, *claim, memory_order_seq_cst, memory_order_relaxed))
		return false;
	/* What was pushed before its producer saw the bell rung is seen now. */
	fence_after_rmw();
	return true;
}

/* Ends a claim.  False: it was overridden. */
static inline bool bell_end(_Atomic uint64_t *bell, uint64_t claim, enum bell_state state)
{
	return atomic_compare_exchange_strong_explicit(bell, &claim,
		(claim & BELL_NUMBER_MASK) | state, memory_order_seq_cst, memory_order_relaxed);
}

/*
 * After a read that found the ring empty, or emptied it: takes the byte out of the socket, unless
 * something has come.
 */
static inline void bell_quiet(_Atomic uint64_t *bell, const struct bell_consumer *c)
{
	uint64_t claim;
	bool taken;

	if (!bell_claim(bell, c->who, &claim))
		return;
	taken = !c->more(c->arg) && c->take(c->arg);
	if (bell_end(bell, claim, taken ? BELL_SILENT : BELL_RUNG))
		return;
	/* Rung anew, and so with a byte of its own. */
	if (!taken)
		c->take(c->arg);
	atomic_fetch_add_explicit(c->settled, 1, memory_order_release);
}

/* ---- the consumer of send rings ---- */

/* After it has taken all bytes, and before it looks at the ring. */
static inline void bell_silence(_Atomic uint64_t *bell)
{
	atomic_exchange_explicit(bell, BELL_SILENT, memory_order_seq_cst);
	fence_after_rmw();
}

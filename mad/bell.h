/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How records leave a receive ring, and how programs hear that there are some: by poll, select and
 * epoll of a socket in which a byte lies exactly while something is to be read.  The bell says
 * whether one does, so that neither side asks the kernel for each MAD.  Head and bell are one word:
 * who changes one of them knows the other.
 *
 *   bits  0..31  head: the position of the first record
 *   bits 32..34  enum bell_state
 *   bits 35..47  number of the ringing; its lower 8 bits are what the byte holds
 *   bits 48..63  BELL_TAKEN: the consumer process that is about to take the byte, from 1
 *
 * A consumer copies the first record and then swaps the word: who loses starts again, so nobody
 * waits for one that was stopped or died in between.  Who finds that the record does not fit leaves
 * the word alone.  Who takes the last record claims the byte by the same swap, looks at the ring
 * once more, and takes the byte or leaves it.
 *
 * weftd, the producer, pushes and then rings, unless all was read in between.  It never waits for a
 * consumer: a claim is overridden, with a byte more, and the one whose claim it was takes one of
 * the two away and then says so (settled).
 *
 * While the byte is on its way (BELL_RINGING) a record has not arrived: if it were read now, the
 * byte would come after it and say what is not true.  A consumer sees by the byte's number that it
 * lies there, and then does what weftd is about to do, it says that the bell is rung.  A record
 * that weftd has not rung for yet (BELL_SILENT) may be taken; then weftd does not ring.
 *
 * A consumer that died with a claim may have left its byte behind, which nobody knows: a ghost.
 * weftd, which knows whom it overrode and who settled that, waits for a moment when there ought to
 * be no byte, asks the kernel, and counts a byte that is there as that of a new ringing.
 */
#pragma once

#include "mad/ring.h"

enum bell_state { BELL_SILENT, BELL_RUNG, BELL_TAKEN, BELL_RINGING };

enum {
	BELL_STATE_SHIFT = 32,
	BELL_NUMBER_SHIFT = 35,
	BELL_CLAIMER_SHIFT = 48,
	BELL_STATE_MASK = 7,
	BELL_NUMBER_MASK = 0x1fff,
};

static inline enum bell_state bell_state(uint64_t word)
{
	return word >> BELL_STATE_SHIFT & BELL_STATE_MASK;
}

static inline uint32_t bell_number(uint64_t word)
{
	return word >> BELL_NUMBER_SHIFT & BELL_NUMBER_MASK;
}

/* Who has claimed the byte, from 1; 0: nobody.  As a consumer wrote it: not to be believed. */
static inline uint32_t bell_claimer(uint64_t word)
{
	return bell_state(word) == BELL_TAKEN ? word >> BELL_CLAIMER_SHIFT : 0;
}

/* Another bell with the head of that word. */
static inline uint64_t bell_word(uint64_t word, enum bell_state state, uint32_t number)
{
	return (uint32_t)word | (uint64_t)state << BELL_STATE_SHIFT |
	       (uint64_t)(number & BELL_NUMBER_MASK) << BELL_NUMBER_SHIFT;
}

/* The same bell, whatever was read since? */
static inline bool bell_same(uint64_t a, uint64_t b)
{
	return a >> BELL_STATE_SHIFT == b >> BELL_STATE_SHIFT;
}

static inline uint64_t bell_load(const struct ring_ref *r)
{
	return atomic_load_explicit(&r->ends->head, memory_order_acquire);
}

/* False: *word is what is there instead. */
static inline bool bell_swap(const struct ring_ref *r, uint64_t *word, uint64_t next)
{
	return atomic_compare_exchange_strong_explicit(
		&r->ends->head, word, next, memory_order_seq_cst, memory_order_acquire);
}

/* ---- the producer ---- */

struct bell_producer {
	struct ring_ref ring;
	uint32_t number; /* of the last ringing */
	/* Sends a byte, and blocks never: if there is no room, some lie there. */
	void (*send)(void *arg, uint8_t number);
	void *arg;
};

/* After pushes, tail being the position behind the last.  The consumer whose claim it overrode, or
 * 0. */
static inline uint32_t bell_ring(struct bell_producer *p, uint64_t tail)
{
	uint64_t word, ringing;

	/* The push, before the look at the bell: see bell_end(). */
	atomic_thread_fence(memory_order_seq_cst);
	word = bell_load(&p->ring);
	/* It is lost each time that a consumer has read, or is hostile. */
	for (unsigned i = 0; i < RING_TRIES; i++) {
		if (bell_state(word) == BELL_RUNG || (uint32_t)word == (uint32_t)tail)
			return 0;
		ringing = bell_word(word, BELL_RINGING, p->number + 1);
		if (!bell_swap(&p->ring, &word, ringing))
			continue;
		p->number++;
		p->send(p->arg, (uint8_t)p->number);
		/* Unless a consumer has seen the byte and said so. */
		bell_swap(&p->ring, &ringing, bell_word(ringing, BELL_RUNG, p->number));
		return bell_claimer(word);
	}
	return 0;
}

/*
 * weftd, when consumer process who is dead.  True: it had a claim, which nobody has now and which
 * counts as overridden.  There may be a ghost for each that it did not settle.  Afterwards weftd
 * rings.
 */
static inline bool bell_bury(struct bell_producer *p, uint32_t who)
{
	uint64_t word = bell_load(&p->ring);

	for (unsigned i = 0; bell_claimer(word) == who && i < RING_TRIES; i++)
		if (bell_swap(&p->ring, &word, bell_word(word, BELL_SILENT, ++p->number)))
			return true;
	return false;
}

/*
 * weftd, while there may be that many ghosts, as often as dead ones did not settle, and all living
 * consumers have: what is left of them is to be asked for again later, at the latest before the
 * next ringing.  bytes(): do any lie in the socket?
 */
static inline void bell_exorcise(
	struct bell_producer *p, bool (*bytes)(void *arg), uint32_t *ghosts)
{
	uint64_t word = bell_load(&p->ring);

	/* Silent: nobody who lives takes a byte. */
	if (!*ghosts || bell_state(word) != BELL_SILENT)
		return;
	if (!bytes(p->arg))
		*ghosts = 0;
	else if (bell_swap(&p->ring, &word, bell_word(word, BELL_RUNG, ++p->number)))
		--*ghosts;
}

/* ---- consumers ---- */

/* What a consumer needs; none of the functions blocks. */
struct bell_consumer {
	struct ring_ref ring;
	uint32_t who;              /* this process, from 1 */
	_Atomic uint32_t *settled; /* this process's count of claims that were overridden */
	bool (*lies)(void *arg, uint8_t number); /* does the byte with that number lie there? */
	bool (*take)(void *arg); /* takes one byte from the socket; false: there is none */
	void *arg;
};

/* Is a record there that can be taken without asking the kernel? */
static inline bool bell_is_ready(const struct ring_ref *r)
{
	uint64_t word = bell_load(r);

	return (uint32_t)word != ring_tail(r) && bell_state(word) != BELL_RINGING;
}

/* Is the byte there that says so, if one is on its way? */
static inline bool bell_arrived(const struct bell_consumer *c, uint64_t word)
{
	return bell_state(word) != BELL_RINGING || c->lies(c->arg, (uint8_t)bell_number(word));
}

/* What poll(2) of the file is to say. */
static inline bool bell_is_readable(const struct bell_consumer *c)
{
	uint64_t word = bell_load(&c->ring);

	return (uint32_t)word != ring_tail(&c->ring) && bell_arrived(c, word);
}

/* Of a bell that is rung: the word with c's claim. */
static inline uint64_t bell_claimed(const struct bell_consumer *c, uint64_t word)
{
	return bell_word(word, BELL_TAKEN, bell_number(word)) | (uint64_t)c->who
									<< BELL_CLAIMER_SHIFT;
}

/* The word when the first of n records, which has arrived, is taken; *claim of it, or 0. */
static inline uint64_t bell_next(
	const struct bell_consumer *c, uint64_t word, uint32_t n, uint64_t *claim)
{
	bool rung = bell_state(word) == BELL_RUNG || bell_state(word) == BELL_RINGING;
	uint64_t next = (word & ~(uint64_t)UINT32_MAX) | (uint32_t)(word + 1);

	if (rung)
		next = bell_word(next, BELL_RUNG, bell_number(word));
	if (rung && n == 1)
		next = bell_claimed(c, next);
	*claim = rung && n == 1 ? next : 0;
	return next;
}

/* One try of bell_take() with the word as it was loaded; RING_LOST: *word is another now. */
static inline enum ring_result bell_try(const struct bell_consumer *c, uint64_t *word,
	bool (*fits)(void *arg, const struct umad_record *rec), void *arg, struct umad_record *rec,
	uint64_t *claim)
{
	const uint64_t was = *word;
	uint32_t n = ring_tail(&c->ring) - (uint32_t)was;
	bool sane = n <= ring_size(&c->ring);

	if (!n)
		return RING_EMPTY;
	if (sane && !bell_arrived(c, was))
		return RING_COMING;
	if (sane)
		ring_load(ring_slot(&c->ring, (uint32_t)was), rec);
	if (sane && fits(arg, rec))
		return bell_swap(&c->ring, word, bell_next(c, was, n, claim)) ? RING_OK : RING_LOST;
	atomic_thread_fence(memory_order_acquire);
	*word = bell_load(&c->ring);
	if ((uint32_t)*word != (uint32_t)was)
		return RING_LOST;
	return sane ? RING_UNFIT : RING_BROKEN;
}

/*
 * Takes the first record, if fits() has it; fits() may see records of arbitrary contents.  *rec
 * is the record with RING_OK, and with RING_UNFIT, when it stays; else anything.  *claim is to be
 * ended by bell_end() if it is not 0, after ring_tells().  RING_EMPTY: bell_claim() likewise.
 */
static inline enum ring_result bell_take(const struct bell_consumer *c,
	bool (*fits)(void *arg, const struct umad_record *rec), void *arg, struct umad_record *rec,
	uint64_t *claim)
{
	uint64_t word = bell_load(&c->ring);
	enum ring_result result = RING_LOST;

	for (unsigned i = 0; result == RING_LOST && i < RING_TRIES; i++)
		result = bell_try(c, &word, fits, arg, rec, claim);
	if (result != RING_OK)
		*claim = 0;
	return result;
}

/* After a read that found the ring empty: claims a byte that lies there all the same; or 0. */
static inline uint64_t bell_claim(const struct bell_consumer *c)
{
	uint64_t word = bell_load(&c->ring), claim = bell_claimed(c, word);

	return bell_state(word) == BELL_RUNG && (uint32_t)word == ring_tail(&c->ring) &&
			       bell_swap(&c->ring, &word, claim)
		       ? claim
		       : 0;
}

/* Ends a claim: takes the byte out of the socket, unless something has come. */
static inline void bell_end(const struct bell_consumer *c, uint64_t claim)
{
	bool silent = false, taken = false;
	uint64_t word = claim;

	for (unsigned i = 0; bell_same(word, claim) && i < RING_TRIES; i++) {
		/* What was pushed before its producer saw the bell rung is seen now. */
		fence_after_rmw();
		if (!silent && (uint32_t)word == ring_tail(&c->ring)) {
			taken = c->take(c->arg);
			silent = true;
		}
		if (bell_swap(&c->ring, &word,
			    bell_word(word, silent ? BELL_SILENT : BELL_RUNG, bell_number(word))))
			return;
	}
	/* Rung anew, and so with a byte of its own. */
	if (!taken)
		c->take(c->arg);
	atomic_fetch_add_explicit(c->settled, 1, memory_order_release);
}

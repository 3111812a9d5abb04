/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a process asks the agent of another one to copy for it: the shared memory, and the protocol
 * on it.  All of it lies in the segment of the process whose agent it is (the owner).
 *
 * A requester takes a slot and has it to itself until it gives it back; a slot has two halves, each
 * a request and a bounce buffer, so that one is filled while the other is served.  A half goes
 * round IDLE -> POSTED (requester) -> SERVING (agent) -> DONE (agent) -> IDLE (requester).  A
 * requester may take back what is only POSTED; who will ask for the same again must do so, or wait
 * until it was served, so that nothing is done twice or late.  What it cannot take back, and what a
 * dead one has left, becomes an orphan, which the agent alone gives back: nobody else knows that it
 * does not touch the bounce buffer any more.  So no holder, dead or stopped, blocks more than its
 * own slot.
 *
 * The word of a slot:
 *   bits  0..35  who has it, 0 = free (a token_owner(): attach id, exec slot)
 *   bit  36      orphan
 *   bits 37..63  generation, counts the times it was given back
 */
#pragma once

#include <stdbool.h>

#include "base/atomic.h"

enum {
	AGENT_SLOTS = 128, /* a process has at most one in another: as many peers at a time */
	AGENT_HALF_BYTES = 64 * 1024,
	AGENT_PERSIST_BYTES = 16 << 20,
#ifdef WEFT_MODEL
	AGENT_PIECES = 1, /* data take no part there, and cost states */
#else
	AGENT_PIECES = 33, /* SGL_MAX */
#endif
	AGENT_OWNER_BITS = 36,
#ifdef WEFT_MODEL
	AGENT_MAP_WORDS = 1,
#else
	AGENT_MAP_WORDS = (1 << 17) / 64,
#endif
};

#define AGENT_OWNER_MASK  ((1ull << AGENT_OWNER_BITS) - 1)
#define AGENT_ATTACH_MASK 0xffffffull
#define AGENT_ORPHAN      (1ull << AGENT_OWNER_BITS)
#define AGENT_GEN_ONE     (AGENT_ORPHAN << 1)
#define AGENT_GEN_MASK    (~(AGENT_ORPHAN | AGENT_OWNER_MASK))

enum agent_phase { AGENT_IDLE, AGENT_POSTED, AGENT_SERVING, AGENT_DONE };

enum agent_op {
	AGENT_FILL,    /* bounce buffer to the buffers of a receive */
	AGENT_PUT,     /* bounce buffer to the target of an RDMA WRITE */
	AGENT_GET,     /* source of an RDMA READ to bounce buffer */
	AGENT_ADD,     /* fetch and add operand[0] */
	AGENT_SWAP,    /* compare with operand[0], store operand[1] if equal */
	AGENT_PERSIST, /* a persistent flush: no bytes travel; at most AGENT_PERSIST_BYTES */
};

/* Memory of the owner, and the key that allows it. */
struct agent_piece {
	uint64_t addr;
	uint32_t len, key;
};

struct agent_half {
	_Alignas(CACHE_LINE) _Atomic uint32_t phase; /* enum agent_phase */
	_Atomic uint32_t sleeper;                    /* the requester sleeps on phase */
	/* the requester, while IDLE */
	uint32_t op; /* enum agent_op */
	uint32_t qp; /* index of the responder's QP */
	uint32_t n;  /* pieces */
	uint32_t len;
	uint64_t operand[2];
	/* the agent, while SERVING */
	uint32_t result; /* enum move_result */
	uint64_t before; /* what an atomic found */
	struct agent_piece piece[AGENT_PIECES];
};

struct agent_slot {
	_Alignas(CACHE_LINE) _Atomic uint64_t word;
	struct agent_half half[2];
};

/*
 * QPs whose peer's queue the agent is to run, for only it reaches the memory to which that goes.
 * Nobody waits for it: a requester that asks has parked the head of its queue.
 */
struct agent_serve {
	_Alignas(CACHE_LINE) _Atomic uint32_t any; /* some bit was set */
	_Atomic uint32_t there;                    /* the agent runs, and will look */
	_Atomic uint64_t map[AGENT_MAP_WORDS];
};

struct agent_area {
	_Alignas(CACHE_LINE) _Atomic uint32_t used; /* slots below were taken at least once */
	_Atomic uint32_t run_any;                   /* some bit of run was set */
	_Alignas(CACHE_LINE) _Atomic uint64_t
		run[AGENT_MAP_WORDS]; /* QPs to be run by their owner */
	struct agent_serve serve;
	struct agent_slot slot[AGENT_SLOTS];
	_Alignas(4096) uint8_t bounce[AGENT_SLOTS][2][AGENT_HALF_BYTES];
};

/* What the agent sleeps on.  Lies in the head of the segment: also while there is no area yet. */
struct agent_bell {
	_Atomic uint32_t rings;
	_Atomic uint32_t asleep;
};

/* ---- the bell ---- */

/* After something was published for the agent.  True: it may sleep on rings, and must be woken. */
static inline bool agent_ring(struct agent_bell *b)
{
	atomic_fetch_add_explicit(&b->rings, 1, memory_order_seq_cst);
	fence_after_rmw();
	return atomic_load_explicit(&b->asleep, memory_order_seq_cst);
}

/* The agent found nothing since it saw rings = seen.  True: it may sleep while they are equal. */
static inline bool agent_may_sleep(struct agent_bell *b, uint32_t seen)
{
	atomic_exchange_explicit(&b->asleep, 1, memory_order_seq_cst);
	fence_after_rmw();
	return atomic_load_explicit(&b->rings, memory_order_seq_cst) == seen;
}

static inline void agent_awake(struct agent_bell *b)
{
	atomic_store_explicit(&b->asleep, 0, memory_order_relaxed);
}

/* ---- queues to be run ---- */

/*
 * Asks for QP index, after the token of its peer's queue was let go of, and rings.  *wake: the
 * agent may sleep on rings.  False: there is none, or one that ends and has looked for the last
 * time.
 */
static inline bool agent_serve_ask(
	struct agent_serve *s, struct agent_bell *b, uint32_t index, bool *wake)
{
	uint64_t bit = 1ull << index % 64;

	atomic_fetch_or_explicit(&s->map[index / 64 % AGENT_MAP_WORDS], bit, memory_order_release);
	atomic_store_explicit(&s->any, 1, memory_order_release);
	*wake = agent_ring(b);
	return atomic_load_explicit(&s->there, memory_order_seq_cst);
}

/* The agent: is there anything to look for in the map?  Then it looks at all of it. */
static inline bool agent_serve_any(struct agent_serve *s)
{
	return atomic_exchange_explicit(&s->any, 0, memory_order_seq_cst);
}

/* Takes the bits of a word of the map. */
static inline uint64_t agent_serve_take(struct agent_serve *s, unsigned word)
{
	if (!atomic_load_explicit(&s->map[word], memory_order_acquire))
		return 0;
	return atomic_exchange_explicit(&s->map[word], 0, memory_order_acq_rel);
}

/* The agent ends; it looks once more after this. */
static inline void agent_serve_end(struct agent_serve *s)
{
	atomic_exchange_explicit(&s->there, 0, memory_order_seq_cst);
	fence_after_rmw();
}

/* ---- the requester ---- */

/* Takes slot s for owner; both halves are IDLE then.  False: somebody has it. */
static inline bool agent_take(struct agent_slot *s, uint64_t owner)
{
	uint64_t v = atomic_load_explicit(&s->word, memory_order_relaxed);

	if (v & (AGENT_OWNER_MASK | AGENT_ORPHAN))
		return false;
	return atomic_compare_exchange_strong_explicit(
		&s->word, &v, v | owner, memory_order_acq_rel, memory_order_relaxed);
}

/* The request and the bounce buffer are written: the agent's turn. */
static inline void agent_post(struct agent_half *h)
{
	atomic_store_explicit(&h->phase, AGENT_POSTED, memory_order_release);
}

/* True once it was served; then the half is IDLE again. */
static inline bool agent_collect(struct agent_half *h)
{
	if (atomic_load_explicit(&h->phase, memory_order_acquire) != AGENT_DONE)
		return false;
	atomic_store_explicit(&h->phase, AGENT_IDLE, memory_order_relaxed);
	return true;
}

/* Takes a request back if it is only posted; the phase in which it was. */
static inline uint32_t agent_take_back(struct agent_half *h)
{
	uint32_t seen = AGENT_POSTED;

	atomic_compare_exchange_strong_explicit(
		&h->phase, &seen, AGENT_IDLE, memory_order_acq_rel, memory_order_acquire);
	return seen;
}

/* True: it was taken back, and will never be served.  False: it was served, or is just now. */
static inline bool agent_cancel(struct agent_half *h)
{
	return agent_take_back(h) == AGENT_POSTED;
}

/* Done with a half, whatever became of it.  False: it is being served just now. */
static inline bool agent_quit(struct agent_half *h)
{
	uint32_t seen = agent_take_back(h);

	if (seen == AGENT_DONE)
		atomic_store_explicit(&h->phase, AGENT_IDLE, memory_order_relaxed);
	return seen != AGENT_SERVING;
}

/* Frees the word, whoever calls; it keeps its generation but for one more. */
static inline void agent_free_word(struct agent_slot *s)
{
	uint64_t v = atomic_load_explicit(&s->word, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(&s->word, &v,
		(v & AGENT_GEN_MASK) + AGENT_GEN_ONE, memory_order_acq_rel, memory_order_relaxed))
		;
}

/*
 * Gives the slot back.  True: it became an orphan, for a half is being served, and the agent
 * must be rung.  Either way the caller touches it no more.
 */
static inline bool agent_leave(struct agent_slot *s)
{
	bool first = agent_quit(&s->half[0]), second = agent_quit(&s->half[1]);

	if (first && second) {
		agent_free_word(s);
		return false;
	}
	atomic_fetch_or_explicit(&s->word, AGENT_ORPHAN, memory_order_acq_rel);
	return true;
}

/*
 * For who knows that process attach is dead: its slots become orphans.  True if s was one of them;
 * then the agent must be rung.
 */
static inline bool agent_orphan(struct agent_slot *s, uint32_t attach)
{
	uint64_t v = atomic_load_explicit(&s->word, memory_order_acquire);

	while (attach && (v & AGENT_ATTACH_MASK) == attach) {
		if (v & AGENT_ORPHAN)
			return true;
		if (atomic_compare_exchange_weak_explicit(&s->word, &v, v | AGENT_ORPHAN,
			    memory_order_acq_rel, memory_order_acquire))
			return true;
	}
	return false;
}

/* ---- the agent ---- */

/* Begins to serve a half, if it is posted. */
static inline bool agent_claim(struct agent_half *h)
{
	uint32_t posted = AGENT_POSTED;

	return atomic_compare_exchange_strong_explicit(
		&h->phase, &posted, AGENT_SERVING, memory_order_acq_rel, memory_order_relaxed);
}

/* Ends it.  True: the requester sleeps on phase, and must be woken. */
static inline bool agent_finish(struct agent_half *h)
{
	atomic_exchange_explicit(&h->phase, AGENT_DONE, memory_order_seq_cst);
	fence_after_rmw();
	return atomic_load_explicit(&h->sleeper, memory_order_seq_cst);
}

/* Gives an orphan back.  Only the agent, which serves nothing at that moment. */
static inline void agent_reclaim(struct agent_slot *s)
{
	for (unsigned i = 0; i < 2; i++) {
		atomic_store_explicit(&s->half[i].phase, AGENT_IDLE, memory_order_relaxed);
		atomic_store_explicit(&s->half[i].sleeper, 0, memory_order_relaxed);
	}
	agent_free_word(s);
}

/* The agent's private memory of a slot: which half comes next, since which taking of it. */
struct agent_turn {
	uint64_t word;
	unsigned half;
};

enum agent_found {
	AGENT_NOTHING,
	AGENT_AGAIN,   /* it was given back, or changed hands: look again */
	AGENT_CLAIMED, /* t->half is to be served, for the holder in t->word; then agent_served() */
};

/* Looks at slot s for something to do.  The halves of one taking come in turn, the first first. */
static inline enum agent_found agent_look_at(struct agent_slot *s, struct agent_turn *t)
{
	uint64_t word = atomic_load_explicit(&s->word, memory_order_acquire);

	if (word & AGENT_ORPHAN) {
		agent_reclaim(s);
		return AGENT_AGAIN;
	}
	if (!(word & AGENT_OWNER_MASK))
		return AGENT_NOTHING;
	if (t->word != word) {
		t->word = word;
		t->half = 0;
	}
	if (!agent_claim(&s->half[t->half]))
		return AGENT_NOTHING;
	/* Somebody else's since we looked: its first half comes first. */
	if (atomic_load_explicit(&s->word, memory_order_acquire) != word) {
		agent_post(&s->half[t->half]);
		return AGENT_AGAIN;
	}
	return AGENT_CLAIMED;
}

/* Ends the serving of t->half.  True: the requester must be woken on *phase. */
static inline bool agent_served(
	struct agent_slot *s, struct agent_turn *t, _Atomic uint32_t **phase)
{
	struct agent_half *h = &s->half[t->half];

	t->half ^= 1;
	*phase = &h->phase;
	return agent_finish(h);
}

/* The requester is about to sleep on phase, which it saw as seen.  True: it may. */
static inline bool agent_sleeps(struct agent_half *h, uint32_t seen)
{
	atomic_exchange_explicit(&h->sleeper, 1, memory_order_seq_cst);
	fence_after_rmw();
	return atomic_load_explicit(&h->phase, memory_order_seq_cst) == seen;
}

static inline void agent_woke(struct agent_half *h)
{
	atomic_store_explicit(&h->sleeper, 0, memory_order_relaxed);
}

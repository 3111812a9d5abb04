/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exec slots: before a thread touches memory or queues on behalf of a QP pair it writes into its
 * own slot whose they are; afterwards it clears the slot.  Who takes something away (dereg,
 * destroy, RESET, ERR) first invalidates it, then fences, then waits until every slot that names
 * it has moved.  After that no thread of any process can still be using the old state.
 *
 * A thread can promise that it uses memory of another process through that one's arena alone, and
 * fills no receive (SLOT_MAPPED).  Who takes memory away need not wait for one that stands still
 * then, if he leaves behind the place in the arena: he passes it, and says so in its slot.
 *
 *   bits  0..23  source attach id (owner of the send queue), 0 = idle
 *   bits 24..47  destination attach id
 *   bit  48      SLOT_MAPPED
 *   bits 49..63  sequence number, so that two uses in a row differ
 */
#pragma once

#include <stdbool.h>

#include "base/atomic.h"

struct exec_slot {
	_Alignas(CACHE_LINE) _Atomic uint64_t word;
	/*
	 * The same for the whole run, which may have many steps.  Between steps the thread holds on
	 * to nothing of another process, but to private structs of its own: who frees those waits
	 * for the run, everybody else for the step.
	 */
	_Atomic uint64_t run;
	uint16_t seq;            /* owner thread only */
	_Atomic uint32_t taken;  /* slot allocation within the process */
	_Atomic uint64_t passed; /* the process that it names: the word that did not hold it up */
};

#define SLOT_ATTACH_MASK 0xffffffull
#define SLOT_MAPPED      (1ull << 48)

/* What a thread says of the memory of others that it uses. */
enum slot_way {
	SLOT_WAYS_ANY,
	SLOT_WAYS_MAPPED, /* SLOT_MAPPED */
};

static inline uint64_t slot_word(uint16_t seq, uint32_t src, uint32_t dst, enum slot_way way)
{
	return (uint64_t)seq << 49 | (uint64_t)way << 48 | (uint64_t)dst << 24 | src;
}

/*
 * Announces work between processes src and dst.  Ordered before later reads only together with
 * the token_take() that must follow.
 */
static inline void slot_enter_as(struct exec_slot *s, uint32_t src, uint32_t dst, enum slot_way way)
{
	uint64_t word = slot_word(++s->seq, src, dst, way);

	atomic_store_explicit(&s->run, word, memory_order_relaxed);
	atomic_store_explicit(&s->word, word, memory_order_relaxed);
}

static inline void slot_enter(struct exec_slot *s, uint32_t src, uint32_t dst)
{
	slot_enter_as(s, src, dst, SLOT_WAYS_ANY);
}

/*
 * Ends one step of a long run and begins the next: everything that was checked must be checked
 * again afterwards.
 */
static inline void slot_step(struct exec_slot *s, uint32_t src, uint32_t dst, enum slot_way way)
{
	atomic_store_explicit(&s->word, slot_word(++s->seq, src, dst, way), memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * For the thread itself, after it has used mapped memory: has somebody who takes memory away passed
 * it since its last step?  Then what it used may be gone; the region's key tells.
 */
static inline bool slot_passed(const struct exec_slot *s)
{
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&s->passed, memory_order_relaxed) ==
	       atomic_load_explicit(&s->word, memory_order_relaxed);
}

/*
 * Between two steps, for a while: the thread sleeps and touches nothing of another process.  Goes
 * on with slot_step().
 */
static inline void slot_rest(struct exec_slot *s)
{
	atomic_store_explicit(&s->word, 0, memory_order_release);
}

/* Ends what slot_enter() announced. */
static inline void slot_leave(struct exec_slot *s)
{
	atomic_store_explicit(&s->word, 0, memory_order_release);
	atomic_store_explicit(&s->run, 0, memory_order_release);
}

/* True if word announces work that involves process attach. */
static inline bool slot_names(uint64_t word, uint32_t attach)
{
	return (word & SLOT_ATTACH_MASK) == attach || (word >> 24 & SLOT_ATTACH_MASK) == attach;
}

/*
 * For the invalidating side, after its seq_cst fence: the value of a slot's word (or run) if it
 * names attach, else 0.  The slot has moved once the value differs from the returned one.
 */
static inline uint64_t slot_busy(_Atomic uint64_t *word, uint32_t attach)
{
	uint64_t w = atomic_load_explicit(word, memory_order_acquire);

	return w && slot_names(w, attach) ? w : 0;
}

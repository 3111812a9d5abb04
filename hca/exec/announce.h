/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling a process what happened: tickets and events of its CQs; and the thread that does so. */
#pragma once

#include <infiniband/verbs.h>

#include "hca/seg/view.h"

enum { ALIVE_CACHE = 8 };

/* When a peer was last seen alive, so that its pid means it and nobody who came after it. */
struct seen_alive {
	uint32_t attach;
	uint64_t ns;
};

struct work;

/* The event of a CQ of another process, put off until the request has completed: complete_late().
 */
struct late_event {
	struct seg *seg; /* NULL: there is none */
	uint32_t attach, index;
	uint32_t arm; /* the CQ's arm word: who arms it anew looks what is there */
	bool solicited;
};

/* The thread that executes: its exec slot, its token identity, and how its process wakes others. */
struct exec {
	uint32_t attach;
	uint32_t slot_index;
	struct exec_slot *slot;
	bool may_wait;  /* this thread may sleep for a peer's agent */
	bool is_worker; /* ... may sleep for the disk */
	bool copies;    /* it last reached memory of others by system calls, and will again */
	uint64_t owner; /* token_owner() of the two */
	_Atomic uint64_t *counters;          /* CTR_ROOM of them, written by this thread alone */
	struct seen_alive seen[ALIVE_CACHE]; /* by attach id */
	/*
	 * Writes the eventfd of a channel of a process (0: its async fd), and enters the note, if
	 * there is one, right before that; never blocks.  False: weftd was asked to, or it cannot
	 * be written.
	 */
	bool (*fire)(uint32_t attach, uint32_t channel, struct fired_note *note, void *arg);
	/*
	 * Asks weftd to watch the deadline of a QP, or of SEG_TIMER_CQ | the index of a CQ; false
	 * if that could not be asked.
	 */
	bool (*timer)(uint32_t attach, uint32_t index, uint64_t when, void *arg);
	void *arg;
	/* Executes a datagram; enum step.  NULL in weftd, which executes nothing. */
	int (*datagram)(struct work *w);
	/*
	 * The shared receive queue with that number, for XRC.  -ENOENT: there is none; -EXDEV: only
	 * the requester can find it; others: it is not known yet.  NULL in weftd.
	 */
	int (*find_srq)(struct work *w, uint32_t srqn, const struct end **out);
	const struct owned_calls *owned;      /* hca/exec/owned.h; NULL in weftd */
	const _Atomic uint64_t *restarted_ns; /* of the fabric page; NULL: none */
	struct late_event *late;              /* where to put off events of others; NULL: not now */
};

static inline void count_add(struct exec *x, enum seg_counter which, uint64_t n)
{
	uint64_t v = atomic_load_explicit(&x->counters[which], memory_order_relaxed);

	atomic_store_explicit(&x->counters[which], v + n, memory_order_relaxed);
}

/* Asks for the line that the next ticket of this CQ goes to: its consumer has it, polling. */
static inline void cq_prefetch(const struct cq_ref *cq)
{
	uint64_t t = atomic_load_explicit(&cq->ring->tail, memory_order_relaxed);

	prefetch_read(&cq->slots[t & ((1ull << cq->log_size) - 1)]);
}

/*
 * Puts a ticket into a CQ of process v, and fires what is armed for it.  False: the CQ is lost.
 */
bool announce_ticket(struct exec *x, const struct view *v, const struct cq_ref *cq, uint64_t ticket,
	bool solicited);

/*
 * May the event of a moderated CQ, entry index of process attach, wait for other completions than
 * those `more`?  Then weftd looks at it when it is due.
 */
bool cq_may_wait(struct exec *x, uint32_t attach, struct seg_cq *cq, uint32_t index, uint32_t more);

/*
 * Fires a CQ, entry index of process attach, if it is armed for such a completion.  True if it did.
 * The one place where events come from.
 */
bool cq_fire(struct exec *x, struct seg *seg, uint32_t attach, uint32_t index, bool solicited);

/* Fires what was put off. */
void complete_late(struct exec *x, const struct late_event *late);

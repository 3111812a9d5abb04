/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completing work requests, raising async events, and flushing a QP in error: the parts of
 * execution that touch only segments.  Runs in the owner, in a local peer and in weftd alike.
 */
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
	 * Writes the eventfd of a channel of a process (0: its async fd); never blocks.  False:
	 * weftd was asked to, or it cannot be written.
	 */
	bool (*fire)(uint32_t attach, uint32_t channel, void *arg);
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

/* How a work request ended. */
struct outcome {
	uint8_t status; /* enum ibv_wc_status */
	uint32_t byte_len;
	uint32_t vendor_err;
};

/* Asks for the line that the next ticket of this CQ goes to: its consumer has it, polling. */
static inline void cq_prefetch(const struct cq_ref *cq)
{
	uint64_t t = atomic_load_explicit(&cq->ring->tail, memory_order_relaxed);

	prefetch_read(&cq->slots[t & ((1ull << cq->log_size) - 1)]);
}

/*
 * Completes the request at the head of e's send queue and moves the head.  The caller holds e's
 * token.
 */
void complete_send(struct exec *x, const struct end *e, uint32_t pos, const struct outcome *o);

/*
 * For a request whose completion a dead executor wrote but perhaps did not announce: announces
 * it (a surplus ticket is harmless) and moves the head.  The caller holds e's token.
 */
void complete_send_again(struct exec *x, const struct end *e, uint32_t pos);

/* What a receive completion carries beside the outcome. */
struct received {
	uint8_t opcode; /* enum ibv_wc_opcode */
	uint8_t wc_flags;
	uint8_t where; /* enum seg_rq_where; the payload is in place already */
	bool solicited;
	bool rendezvous; /* the receive completes twice */
	uint8_t sl;
	uint32_t imm, src_qp, ring_pos;
};

/* Completes the receive at e's rq_head and moves the head.  The caller holds e's rq_token. */
void complete_recv(struct exec *x, const struct end *e, uint32_t pos, const struct outcome *o,
	const struct received *r);

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

/*
 * Takes a receive of e's queue with several producers; *pos is its position.  Raises the limit
 * event of an SRQ when it is due.  False: none is posted.
 */
bool shared_take(struct exec *x, const struct end *e, uint32_t *pos);

/* Gives it back uncompleted: it is the next to be taken. */
void shared_untake(struct exec *x, const struct end *e, uint32_t pos);

/*
 * Completes the receive at pos, taken from queue rx of end `at`, for QP e; at is e itself or, for
 * XRC, the SRQ.
 */
void complete_shared(struct exec *x, const struct end *e, const struct end *at,
	const struct rxq_ref *rx, uint32_t pos, const struct outcome *o, const struct received *r);

/* Announces, on e's receive CQ, an operation of its owner that completed. */
void complete_note(struct exec *x, const struct end *e);

/*
 * What process dead_id had taken of e's own queue goes back, and what it completed is announced
 * (again).  True if there was anything.
 */
bool shared_recover(struct exec *x, const struct end *e, uint32_t dead_id);

/* True if e's entry describes a queue with several producers (of a UD QP, or an SRQ). */
static inline bool owns_shared(const struct end *e)
{
	return e->rx.ring.slots && e->rx.index == e->index;
}

/* Marks an async event of e's QP and wakes its process if it is new. */
void raise_qp_event(struct exec *x, const struct end *e, enum ibv_event_type type);

/*
 * A request of e's own has failed: UC and UD go to SQE, from which they may come back, all others
 * to ERR.
 */
void qp_set_send_error(const struct end *e);

/* In a state in which the send queue is flushed. */
static inline bool sends_flush(const struct end *e)
{
	uint32_t s = end_state(e);

	return s == IBV_QPS_ERR || s == IBV_QPS_SQE;
}

/* Moves e's QP to ERR if it is in a state from which that is possible.  True if it was. */
bool qp_set_error(const struct end *e);

/*
 * Completes what is queued in e's QP, which is in ERR, with WR_FLUSH_ERR.  held: the caller holds
 * e's token.  What somebody else holds at the moment is left to them, by a kick.
 */
void qp_flush(struct exec *x, const struct end *e, bool held);

/*
 * The same for the receive queue alone: after a post_recv in ERR, and for the holder of rq_token
 * that was kicked (its token_drop() said so).  In any state it announces a completion that a
 * dead executor wrote but perhaps did not announce.
 */
void qp_flush_recv(struct exec *x, const struct end *e);

/* Lets go of e's rq_token; does the flush that somebody may have asked for meanwhile. */
void rq_token_drop(struct exec *x, const struct end *e);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A view is a process as an executor sees it: its segment and how to reach its memory.  An end
 * is one QP of it, with pointers that were checked once against the bounds of the segment.  An
 * end is immutable; when the QP behind it was recreated its generation no longer matches.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/own_fd.h"
#include "hca/seg/seg.h"
#include "pages/arena.h"
#include "pages/backing.h"

struct worker;

/* How this process reaches the memory of another one. */
struct access_path {
	_Atomic uint32_t by_agent; /* the kernel refuses cma: ask its agent */
	_Atomic uint32_t blocks;   /* persistent flushes between us wait for a disk */
	bool never_agent;          /* one of us wants no agent: a refusal is an error */
	struct worker *lane;       /* who may wait for that agent */
};

struct view {
	struct seg *seg;
	uint32_t attach;
	int pid;                      /* 0: our own process, memory is reached directly */
	struct own_fd pidfd;          /* for the slow path only */
	struct access_path *path;     /* NULL: nobody here moves bytes to or from it */
	struct arena *arena;          /* of another process, NULL: none */
	struct backing_map *backings; /* what it shares by other objects; NULL: as arena */
};

struct cq_ref {
	struct seg_cq *cq;
	struct ticket_ring *ring;
	_Atomic uint64_t *slots;
	uint32_t log_size, limit;
	uint32_t index;
	uint32_t resizes; /* seg_cq.resizes when this was filled; another value: it is stale */
};

/* A receive queue with several producers, as an executor sees it. */
struct rxq_ref {
	struct rxq_ring ring; /* slots NULL: none */
	struct seg_qp *entry; /* where it is described */
	uint8_t *bounce;
	uint32_t index, gen; /* of the entry */
	uint32_t pd, sge_max;
	uint32_t resizes;  /* seg_rxq.resizes of the ring; another value: it is stale */
	bool matches_tags; /* of an SRQ with a list of tags, which is in struct end */
};

struct end {
	struct view view;
	struct seg_qp *qp;
	uint32_t index, qpn;
	_Atomic uint32_t gen; /* read it by end_gen() */
	uint32_t pd;
	uint8_t *sq, *rq; /* rq NULL: none */
	uint32_t sq_mask, rq_mask;
	uint32_t sq_stride, rq_stride;
	uint32_t sge_max; /* that fit in a slot of the send queue */
	uint32_t rq_sge_max;
	uint8_t *ring, *park_buf;
	bool sig_all;
	uint8_t type;                   /* enum ibv_qp_type, or SEG_TYPE_SRQ */
	uint8_t stamps;                 /* enum seg_stamps */
	struct cq_ref send_cq, recv_cq; /* cq NULL: none */
	struct rxq_ref rxq;             /* of a UD QP, a shared one, or that of an SRQ's entry */
	struct end *next;               /* for the owner of the object */
	struct rxq_ref tags;            /* if rxq.matches_tags */
};

/*
 * Fills *e for QP index of view v.  Returns 0, -ENOENT if no live QP is there, -EPROTO if its
 * description does not fit the segment (a peer that scribbled).
 */
int end_init(struct end *e, const struct view *v, uint32_t index);

/*
 * Fills *r for CQ index of view v, as it is now.  Returns 0, or -EPROTO if its description does
 * not fit the segment.
 */
int cq_ref_init(struct cq_ref *r, const struct view *v, uint32_t index);

/*
 * The same for the receive queue that entry index describes, with several producers.  While its
 * slots move, the ring is stale at once.
 */
int rxq_ref_init(struct rxq_ref *r, const struct view *v, uint32_t index);

/* The index of QP number qpn in v's process, or -ENOENT. */
int64_t view_find_qpn(const struct view *v, uint32_t qpn);

static inline struct seg_wqe *end_wqe(const struct end *e, uint32_t pos)
{
	return (struct seg_wqe *)(e->sq + (uint64_t)(pos & e->sq_mask) * e->sq_stride);
}

/* Where the state word is in the slot of a queue with several producers. */
enum { RXQ_STATE_AT = offsetof(struct seg_rxq_slot, rqe.state) };

/* The receive at pos of a queue with several producers, and its bounce buffer. */
static inline struct seg_rxq_slot *rxq_at(const struct rxq_ref *r, uint32_t pos)
{
	return (struct seg_rxq_slot *)((char *)rxq_slot(&r->ring, pos) - RXQ_STATE_AT);
}

/* Asks for the lines of the receive at pos that a short message needs: its owner used them last. */
static inline void rxq_fetch(const struct rxq_ref *r, uint32_t pos)
{
	const struct seg_rxq_slot *s = rxq_at(r, pos);

	prefetch_write(&s->rqe.state);
	prefetch_read(&s->rqe);
	prefetch_write(s->near);
}

/* The same of the receive that is most likely taken next. */
static inline void rxq_fetch_head(const struct rxq_ref *r)
{
	rxq_fetch(r, atomic_load_explicit(r->ring.head, memory_order_relaxed));
}

static inline uint8_t *rxq_bounce(const struct rxq_ref *r, uint32_t pos)
{
	return r->bounce + (uint64_t)(pos & r->ring.mask) * SEG_BOUNCE_BYTES;
}

/* Where len bytes of payload for its owner go; *where: enum seg_rq_where. */
static inline uint8_t *rxq_room(const struct rxq_ref *r, uint32_t pos, uint32_t len, uint8_t *where)
{
	*where = len <= RXQ_NEAR_BYTES ? RQ_IN_NEAR : RQ_IN_BOUNCE;
	return len <= RXQ_NEAR_BYTES ? rxq_at(r, pos)->near : rxq_bounce(r, pos);
}

/* True while the entry that describes the queue is what it was. */
static inline bool rxq_live(const struct rxq_ref *r)
{
	uint32_t s = atomic_load_explicit(&r->entry->state, memory_order_acquire);

	return s >> QPS_GEN_SHIFT == r->gen && s & QPS_LIVE;
}

/* True while its slots are where the ring says. */
static inline bool rxq_in_place(const struct rxq_ref *r)
{
	return atomic_load_explicit(&r->entry->rxq.resizes, memory_order_acquire) == r->resizes;
}

static inline struct seg_rqe *end_rqe(const struct end *e, uint32_t pos)
{
	return (struct seg_rqe *)(e->rq + (uint64_t)(pos & e->rq_mask) * e->rq_stride);
}

/* Where the time of its completion goes in the slot at pos; only if e->stamps says so. */
static inline _Atomic uint64_t *end_wqe_stamp(const struct end *e, uint32_t pos)
{
	return (_Atomic uint64_t *)((char *)end_wqe(e, pos) + e->sq_stride) - 1;
}

static inline _Atomic uint64_t *end_rqe_stamp(const struct end *e, uint32_t pos)
{
	return (_Atomic uint64_t *)((char *)end_rqe(e, pos) + e->rq_stride) - 1;
}

/*
 * The generation of the QP that e was made of.  Of our own QP the way to RESET moves it on, under
 * the QP's modify_lock, while other threads (the engine of a wire) look: after the state word says
 * RESET, and before it says anything else.  So who has read the word gets the same of either value.
 */
static inline uint32_t end_gen(const struct end *e)
{
	return atomic_load_explicit(&e->gen, memory_order_relaxed);
}

/* The state word if it is of this generation and live, else 0 (which is RESET). */
static inline uint32_t end_state(const struct end *e)
{
	uint32_t s = atomic_load_explicit(&e->qp->state, memory_order_acquire);
	uint32_t rest = s ^ (end_gen(e) << QPS_GEN_SHIFT | QPS_LIVE);

	return rest <= QPS_STATE_MASK ? rest : 0;
}

/* The QP went through RESET, or away, since e was made. */
static inline bool end_stale(const struct end *e)
{
	uint32_t s = atomic_load_explicit(&e->qp->state, memory_order_acquire);

	return s >> QPS_GEN_SHIFT != end_gen(e);
}

/* In a state in which a responder takes requests. */
static inline bool end_receives(const struct end *e)
{
	uint32_t s = end_state(e);

	return s == IBV_QPS_RTR || s == IBV_QPS_RTS || s == IBV_QPS_SQD || s == IBV_QPS_SQE;
}

/* Has it a queue of its own to send from, or to receive from?  Whatever a peer's entry says. */
static inline bool end_sends(const struct end *e)
{
	return e->sq && e->send_cq.cq;
}

static inline bool end_has_rq(const struct end *e)
{
	return e->rq && e->recv_cq.cq;
}

/* Is the memory of v's process served by its agent? */
static inline bool view_by_agent(const struct view *v)
{
	return v->pid && v->path && atomic_load_explicit(&v->path->by_agent, memory_order_relaxed);
}

/* Is what is left of our work with it for a thread that may sleep? */
static inline bool view_may_block(const struct view *v)
{
	return view_by_agent(v) ||
	       (v->pid && v->path && atomic_load_explicit(&v->path->blocks, memory_order_relaxed));
}

/*
 * Is the process dead?  Asks its pidfd too, for when weftd, who tells of deaths, is down; then
 * marks the segment for everybody.  A program may have closed our fds (closefrom) or put its own
 * in their place: then the pid is asked, and a doubt counts as alive.
 */
bool view_died(const struct view *v);

/*
 * Is the process stopped (SIGSTOP, a debugger)?  Asks /proc; a process that cannot be seen there
 * counts as stopped.
 */
bool view_stopped(const struct view *v);

/* What weftd, or somebody who asked, has marked. */
static inline bool view_dead(const struct view *v)
{
	return atomic_load_explicit(&v->seg->hdr.dead, memory_order_relaxed);
}

/* Bytes from one slot to the next for so many SGEs or inline bytes, and perhaps a stamp. */
uint32_t sq_stride_for(uint32_t max_sge, uint32_t max_inline, bool stamp);
uint32_t rq_stride_for(uint32_t max_sge, bool stamp);
/* The same for a queue with several producers. */
uint32_t rxq_stride_for(uint32_t max_sge);

/* The binary logarithm of how many slots a queue of that depth has. */
unsigned slots_log_for(uint32_t depth);

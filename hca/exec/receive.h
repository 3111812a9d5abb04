/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive that a SEND or an RDMA WRITE with immediate consumes. */
#pragma once

#include "hca/exec/work.h"

/*
 * The slots of *at's shared receives are not where it says: makes *at a copy (w->mem_now) that
 * knows the place.  STEP_DONE; STEP_BUSY: they are moving now; STEP_NO_PEER: the queue is not what
 * it was.
 */
enum step receive_find_ring(struct work *w, const struct end **at);

/* Does a receive of process v with one SGE take want bytes?  False: receive_fits() says. */
static inline bool receive_fits_plain(
	const struct view *v, uint32_t pd, const struct seg_rqe *r, uint64_t want)
{
	const struct seg_sge s = r->near[0];

	return r->num_sge == 1 && resolve_plain(v, pd, &s, want, IBV_ACCESS_LOCAL_WRITE);
}

/* The SGEs of a receive, near and far ones, at most max, in out (room for SGL_MAX). */
unsigned receive_sges(const struct seg_rqe *r, unsigned max, struct seg_sge *out);

/*
 * Does a receive of process v, with at most max SGEs, take want bytes?  0, or the status with which
 * it completes: IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR.
 */
enum ibv_wc_status receive_fits(
	const struct view *v, uint32_t pd, const struct seg_rqe *r, unsigned max, uint64_t want);

/* Makes sure that we hold the responder's rq_token.  STEP_DONE, or STEP_NO_PEER: it flushes. */
enum step receive_hold_queue(struct work *w);

/*
 * Finds the receive that this request will consume.  STEP_DONE: w->rqe is it; else why not.  Only
 * the holder of the responder's rq_token may complete receives.
 */
enum step receive_find(struct work *w);

/* That receive is consumed, or it is not. */
void receive_finish(struct work *w, const struct outcome *o, const struct received *r);
void receive_leave(struct work *w);

/*
 * Do we carry out another process's request, into a receive of our own?  Then the request completes
 * first.  Whoever sees the receive may end our process at once, and with it this thread: what a
 * program has received is a success for its sender.
 */
static inline bool receive_ends_last(const struct work *w)
{
	return w->req->view.pid && !w->mem->view.pid;
}

/*
 * The same, and the request has succeeded.  A process that sleeps is told after both: the call that
 * wakes it may take the CPU away from us, and its answer is not to come before our own completion.
 */
static inline enum step receive_finish_both(
	struct work *w, const struct outcome *o, const struct received *r)
{
	bool last = receive_ends_last(w);
	struct late_event late;

	late.seg = NULL;
	w->x->late = &late;
	if (!last)
		receive_finish(w, o, r);
	work_succeed(w);
	if (last)
		receive_finish(w, o, r);
	w->x->late = NULL;
	if (late.seg)
		complete_late(w->x, &late);
	return STEP_DONE;
}

/* What its completion says beside the payload's place; from_qpn: whose message it is. */
static inline void receive_fill(const struct work *w, struct received *r, uint32_t from_qpn)
{
	r->opcode = w->op->recv_wc;
	r->wc_flags = w->op->has_imm ? IBV_WC_WITH_IMM : w->op->invalidates ? IBV_WC_WITH_INV : 0;
	r->imm = w->imm;
	r->src_qp = from_qpn;
	r->solicited = w->flags & IBV_SEND_SOLICITED;
}

/* The first message of a connection may reach a responder that is still in RTR. */
static inline void receive_note_established(struct work *w)
{
	if (!w->shared && w->rq_pos == w->resp->qp->rq_base && end_state(w->resp) == IBV_QPS_RTR)
		raise_qp_event(w->x, w->resp, IBV_EVENT_COMM_EST);
}

/* Bytes that a receive has room for; room is SGL_MAX entries to work in. */
uint64_t receive_room(const struct work *w, struct seg_sge *room);

/*
 * Where it wants w->length bytes, in *p: a list of the responder's addresses, the way there still
 * to be chosen.  0, or why it cannot have them, as receive_fits().
 */
enum ibv_wc_status receive_range(struct work *w, struct payload *p, struct held *held);

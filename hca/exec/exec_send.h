/* SPDX-License-Identifier: BSD-3-Clause */
/* SEND, and the receive that a SEND or an RDMA WRITE with immediate consumes. */
#pragma once

#include "hca/exec/exec_op.h"

/*
 * The slots of *at's shared receives are not where it says: makes *at a copy (w->mem_now) that
 * knows the place.  STEP_DONE; STEP_BUSY: they are moving now; STEP_NO_PEER: the queue is not what
 * it was.
 */
enum step work_find_ring(struct work *w, const struct end **at);

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

/* Executes a SEND. */
enum step work_send(struct work *w);

/*
 * The same, w->plain: without lists if both ends have one piece and the payload fits where its
 * owner copies it out; else all of work_send().
 */
enum step work_send_plain(struct work *w);

/* Makes sure that we hold the responder's rq_token.  STEP_DONE, or STEP_NO_PEER: it flushes. */
enum step send_hold_receives(struct work *w);

/*
 * Finds the receive that this request will consume.  STEP_DONE: w->rqe is it; else why not.  Only
 * the holder of the responder's rq_token may complete receives.
 */
enum step send_find_receive(struct work *w);

/* That receive is consumed, or it is not. */
void send_finish_receive(struct work *w, const struct outcome *o, const struct received *r);

/*
 * The same, and the request has succeeded.  A process that sleeps is told of the receive after
 * that: the call that wakes it may take the CPU away from us, and its answer is not to come before
 * our own completion.
 */
enum step send_finish(struct work *w, const struct outcome *o, const struct received *r);
void send_leave_receive(struct work *w);

/* What its completion says beside the payload's place. */
void send_fill_received(const struct work *w, struct received *r);

/* The first message of a connection may reach a responder that is still in RTR. */
void send_note_established(struct work *w);

/* Bytes that a receive has room for; room is SGL_MAX entries to work in. */
uint64_t send_room(const struct work *w, struct seg_sge *room);

/*
 * Brings w->length bytes of src into that receive and says in *r where.  False: the request, and
 * perhaps the receive, ended in *s (which is STEP_DONE for UC).
 */
bool send_place(
	struct work *w, struct payload *src, struct held *held, struct received *r, enum step *s);

/* Finds the next receive and brings the request's bytes into it; else as send_place(). */
bool send_payload(struct work *w, struct received *r, enum step *s);

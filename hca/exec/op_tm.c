// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/op_tm.h"

#include <endian.h>
#include <infiniband/tm_types.h>
#include <string.h>

#include "hca/exec/carry.h"
#include "hca/exec/exec_rxq.h"
#include "hca/exec/fail.h"
#include "hca/exec/flush.h"
#include "hca/exec/op_send.h"
#include "hca/exec/range.h"
#include "hca/exec/receive.h"
#include "hca/exec/way_table.h"
#include "hca/seg/tm_list.h"
#include "hca/seg/token.h"

/* What a message begins with. */
struct header {
	struct ibv_tmh tmh;
	struct ibv_rvh rvh;
};

_Static_assert(sizeof(struct header) <= RQ_INLINE_MAX, "it fits into a receive's slot");

/* ---- looking at the message ---- */

static enum move_result peek(
	struct work *w, const struct payload *src, struct held *held, struct header *h)
{
	uint64_t n = w->length < sizeof *h ? w->length : sizeof *h;
	struct payload part, here;

	memset(h, 0, sizeof *h);
	part.way = src->way;
	part.at = src->at;
	part.held_at = src->held_at;
	sgl_head(&src->l, n, &part.l);
	if (src->way == &way_here) {
		sgl_gather(&part.l, (uint8_t *)h);
		return MOVE_OK;
	}
	payload_of_bytes(&here, h, n);
	return carry(w, &part, &here, held);
}

/* Does it ask for a receive with its tag? */
static bool has_tag(const struct work *w, const struct header *h)
{
	switch (h->tmh.opcode) {
	case IBV_TMH_EAGER:
		return w->length >= sizeof h->tmh;
	case IBV_TMH_RNDV:
		return w->length >= sizeof *h;
	default:
		return false;
	}
}

/* ---- a message that no receive expects ---- */

/* *again: a receive was added meanwhile, the message may fit that one. */
static enum step unexpected(struct work *w, bool tagged, bool *again)
{
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct received r = {.where = RQ_DIRECT};
	enum step s;

	if (!op_send_payload(w, &r, &s))
		return s;
	if (tagged && !tm_count_unexpected(&w->mem->tags, w->tm_seen)) {
		receive_leave(w);
		*again = true;
		return STEP_DONE;
	}
	receive_fill(w, &r, w->req->qpn);
	r.opcode = tagged ? IBV_WC_TM_RECV : IBV_WC_TM_NO_TAG;
	return receive_finish_both(w, &o, &r);
}

/* ---- one that a receive expects ---- */

/* What the receive's completion says; w->length is again that of the message. */
static void matched(struct work *w, struct received *r, uint64_t length)
{
	w->length = length;
	receive_fill(w, r, w->req->qpn);
	r->opcode = IBV_WC_TM_RECV;
	r->wc_flags |= IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID;
}

static enum step eager(struct work *w, const struct header *h)
{
	uint64_t length = w->length;
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = length - sizeof h->tmh};
	struct received r = {.where = RQ_DIRECT};
	struct payload src;
	struct held held;
	enum step s;

	if (!range_source(w, &src, &held)) {
		receive_leave(w);
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	}
	sgl_consume(&src.l, sizeof h->tmh);
	w->length -= sizeof h->tmh;
	if (!op_send_place(w, &src, &held, &r, &s))
		return s;
	matched(w, &r, length);
	return receive_finish_both(w, &o, &r);
}

/* ---- rendezvous ---- */

/* The requester's receive for the message that says that the data was read. */
struct fin {
	struct rxq_ref rxq; /* ring.slots NULL: of a plain queue */
	uint32_t pos;
	struct seg_rqe *rqe;
	bool held; /* we hold the requester's rq_token */
};

static void fin_release(struct work *w, struct fin *f)
{
	if (f->held)
		rq_token_drop(w->x, w->req);
	f->held = false;
}

/* From a shared queue of the requester's. */
static bool fin_take_rxq(struct work *w, struct fin *f)
{
	struct end at = *w->req;

	if (!rxq_in_place(&at.rxq) && rxq_ref_init(&at.rxq, &at.view, at.rxq.index))
		return false;
	if (!rxq_in_place(&at.rxq) || !exec_rxq_take(w->x, &at, &f->pos))
		return false;
	f->rxq = at.rxq;
	f->rqe = &rxq_at(&f->rxq, f->pos)->rqe;
	return true;
}

/* STEP_RNR: it has posted none; STEP_BUSY: somebody else completes its receives just now. */
static enum step fin_take(struct work *w, struct fin *f)
{
	const struct end *e = w->req;

	f->rxq.ring.slots = NULL;
	f->held = false;
	if (!e->recv_cq.cq) /* a requester of XRC: it has no receives */
		return STEP_RNR;
	/* (It may be connected to itself.) */
	if (e->qp != w->resp->qp) {
		if (!token_take(&e->qp->rq_token, w->x->owner))
			return STEP_BUSY;
		f->held = true;
	}
	if (e->rxq.ring.slots) {
		if (fin_take_rxq(w, f))
			return STEP_DONE;
	} else if (e->rq) {
		f->pos = atomic_load_explicit(&e->qp->rq_head, memory_order_relaxed);
		f->rqe = end_rqe(e, f->pos);
		if (atomic_load_explicit(&f->rqe->posted, memory_order_acquire) == f->pos + 1)
			return STEP_DONE;
	}
	fin_release(w, f);
	return STEP_RNR;
}

static void fin_leave(struct work *w, struct fin *f)
{
	struct end at = *w->req;

	if (f->rxq.ring.slots) {
		at.rxq = f->rxq;
		exec_rxq_untake(w->x, &at, f->pos);
	}
	fin_release(w, f);
}

/* 0, or why the receive cannot take the message. */
static enum ibv_wc_status fin_check(const struct work *w, const struct fin *f)
{
	bool shared = f->rxq.ring.slots;

	return receive_fits(&w->req->view, shared ? f->rxq.pd : w->req->pd, f->rqe,
		shared ? f->rxq.sge_max : w->req->rq_sge_max, sizeof(struct header));
}

/* If that receive is no good, both QPs go to ERR: false, the responder's is still to be flushed. */
static bool fin_deliver(struct work *w, struct fin *f, const struct header *h)
{
	struct outcome o = {.status = fin_check(w, f), .byte_len = sizeof *h};
	struct received r = {
		.opcode = f->rxq.ring.slots && f->rxq.matches_tags ? IBV_WC_TM_NO_TAG : IBV_WC_RECV,
		.where = RQ_IN_SLOT,
		.src_qp = w->resp->qpn};
	uint8_t *room = f->rxq.ring.slots ? rxq_room(&f->rxq, f->pos, sizeof *h, &r.where)
					  : f->rqe->payload;
	struct header fin = *h;

	fin.tmh.opcode = IBV_TMH_FIN;
	memcpy(room, &fin, sizeof fin);
	if (o.status) {
		work_count_error(w->x, o.status);
		qp_set_error(w->req);
		qp_set_error(w->resp);
	}
	if (f->rxq.ring.slots)
		exec_rxq_complete(w->x, w->req, w->req, &f->rxq, f->pos, &o, &r);
	else
		complete_recv(w->x, w->req, f->pos, &o, &r);
	fin_release(w, f);
	return !o.status;
}

/* The data, as the responder would read it. */
static bool read_source(
	const struct work *w, const struct header *h, struct payload *p, struct held *held)
{
	uint64_t len = be32toh(h->rvh.len);

	held_reset(held);
	payload_begin(p, held);
	if (len && (!(w->req->qp->access & IBV_ACCESS_REMOTE_READ) ||
			   !resolve_remote(w->req, be32toh(h->rvh.rkey), be64toh(h->rvh.va), len,
				   IBV_ACCESS_REMOTE_READ, &p->l, held)))
		return false;
	way_of_requester(w->req, p, held);
	return true;
}

/* The receive is too small: its program gets the headers and goes on by itself. */
static enum step incomplete(struct work *w, const struct header *h)
{
	const struct outcome o = {.status = IBV_WC_TM_RNDV_INCOMPLETE, .byte_len = sizeof *h};
	struct received r = {.where = RQ_DIRECT};

	memcpy(rxq_room(w->rxq, w->rq_pos, sizeof *h, &r.where), h, sizeof *h);
	matched(w, &r, w->length);
	return receive_finish_both(w, &o, &r);
}

/* The responder could not read the data: its receive ends in error, and both QPs. */
static enum step unreadable(struct work *w)
{
	bool allowed = w->req->qp->access & IBV_ACCESS_REMOTE_READ;
	const struct outcome o = {
		.status = allowed ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR};
	struct received r = {.where = RQ_DIRECT};

	work_count_error(w->x, o.status);
	qp_set_error(w->resp);
	matched(w, &r, w->length);
	receive_finish(w, &o, &r);
	qp_flush(w->x, w->resp, false);
	raise_qp_event(w->x, w->req, allowed ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
	return work_failed(w, IBV_WC_REM_OP_ERR);
}

static enum step read_and_finish(struct work *w, const struct header *h, struct fin *f)
{
	uint64_t length = w->length, data = be32toh(h->rvh.len);
	const struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = data};
	struct received r = {.where = RQ_DIRECT, .rendezvous = true};
	struct payload src;
	struct held held;
	bool last, fits;
	enum step s;

	if (!read_source(w, h, &src, &held)) {
		fin_leave(w, f);
		return unreadable(w);
	}
	w->length = data;
	if (!op_send_place(w, &src, &held, &r, &s)) {
		fin_leave(w, f);
		return s;
	}
	matched(w, &r, length);
	last = receive_ends_last(w);
	if (!last)
		receive_finish(w, &o, &r);
	/* As for an adapter, whose answer comes after the acknowledgement. */
	work_succeed(w);
	fits = fin_deliver(w, f, h);
	if (last)
		receive_finish(w, &o, &r);
	if (!fits)
		qp_flush(w->x, w->resp, false);
	return STEP_DONE;
}

/* STEP_RNR: the requester has no receive for our answer; then nothing was done. */
static enum step rendezvous(struct work *w, const struct header *h)
{
	struct seg_sge room[SGL_MAX];
	struct fin f;
	enum step s;

	if (receive_room(w, room) < be32toh(h->rvh.len))
		return incomplete(w, h);
	s = fin_take(w, &f);
	if (s != STEP_DONE) {
		receive_leave(w);
		return s;
	}
	return read_and_finish(w, h, &f);
}

/* ---- dispatch ---- */

/* True: a receive with that tag is taken. */
static bool expect(struct work *w, const struct header *h)
{
	const struct rxq_ref *tags = &w->mem->tags;

	if (!tm_take(tags, be64toh(h->tmh.tag), w->x->attach, &w->rq_pos, &w->tm_seen))
		return false;
	w->shared = true;
	w->rxq = tags;
	w->rqe = &rxq_at(tags, w->rq_pos)->rqe;
	rxq_at(tags, w->rq_pos)->got_tag = be64toh(h->tmh.tag);
	w->rqe->priv = be32toh(h->tmh.app_ctx);
	return true;
}

enum step op_tm_send(struct work *w)
{
	bool again = true, tagged;
	unsigned tries = 0;
	struct payload src;
	struct header h;
	struct held held;
	enum move_result moved;
	enum step s;

	if (!range_source(w, &src, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	moved = peek(w, &src, &held, &h);
	if (moved != MOVE_OK)
		return work_move_failed(w, moved, IBV_WC_REM_OP_ERR);
	s = receive_hold_queue(w);
	if (s != STEP_DONE || !end_receives(w->resp))
		return STEP_NO_PEER;
	tagged = has_tag(w, &h);
	w->tm_seen = tm_word(&w->mem->tags);
	while (again) {
		again = false;
		if (tagged && expect(w, &h)) {
			s = h.tmh.opcode == IBV_TMH_EAGER ? eager(w, &h) : rendezvous(w, &h);
			if (s != STEP_RNR)
				return s;
		}
		/* (Its owner could scribble for ever: in the end the message is lost to its tag.)
		 */
		s = unexpected(w, tagged && tries++ < TM_TRIES, &again);
	}
	return s;
}

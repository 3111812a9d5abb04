// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/respond.h"

#include "hca/exec/carry.h"
#include "hca/exec/fail.h"
#include "hca/exec/flush.h"
#include "hca/exec/range.h"
#include "hca/exec/receive.h"
#include "hca/exec/way_table.h"
#include "hca/exec/window.h"

/* For the responder's log; the one who moved its QP to ERR writes it, before that is told. */
static void note_fault(const struct work *w, const struct asker *who, enum ibv_wc_status status)
{
	struct seg_fault *f = &w->resp->qp->fault;

	f->status = status;
	f->opcode = who->opcode;
	f->from_qpn = who->qpn;
	f->from_pid = who->pid;
	f->rkey = w->rkey;
	f->need = op_rights(w->op, w->flush);
	f->raddr = w->raddr;
	f->length = w->op->kind == OP_FLUSH ? w->range_len : w->length;
	if (who->comm)
		memcpy(f->comm, who->comm, sizeof f->comm);
	else
		memset(f->comm, 0, sizeof f->comm);
	atomic_store_explicit(&f->gen, w->resp->gen + 1, memory_order_release);
}

void respond_refuse(struct work *w, const struct asker *who, enum ibv_wc_status status,
	enum ibv_event_type event)
{
	if (!qp_set_error(w->resp))
		return;
	note_fault(w, who, status);
	raise_qp_event(w->x, w->resp, event);
	qp_flush(w->x, w->resp, false);
}

void respond_receive_failed(struct work *w, uint32_t from_qpn, enum ibv_wc_status status)
{
	const struct outcome o = {.status = status};
	const struct received r = {.opcode = w->op->recv_wc, .src_qp = from_qpn};

	work_count_error(w->x, status);
	qp_set_error(w->resp);
	receive_finish(w, &o, &r);
	qp_flush(w->x, w->resp, false);
}

/* ---- messages in pieces ---- */

static const struct verdict ok = {.answer = ANSWER_OK};

static struct verdict nak(enum ibv_wc_status status)
{
	return (struct verdict){.answer = ANSWER_NAK, .status = status};
}

static struct verdict refused(struct work *w, const struct respond *r, enum ibv_wc_status status)
{
	const struct asker who = {.qpn = r->rq.from_qpn, .opcode = r->rq.opcode};

	respond_refuse(w, &who, status,
		status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
	return nak(status);
}

static struct verdict of_step(enum step s)
{
	enum answer a = s == STEP_RNR    ? ANSWER_RNR
			: s == STEP_BUSY ? ANSWER_BUSY
					 : ANSWER_NOT_READY;

	return s == STEP_DONE ? ok : (struct verdict){.answer = a};
}

/* What the message has of a work request: nothing of a requester. */
static void enter(struct work *w, const struct respond *r, struct exec *x)
{
	const struct end *e = r->e;

	*w = (struct work){.x = x,
		.asked = &r->rq,
		.resp = e,
		.mem = e,
		.named = e->view.attach,
		.op = op_of(r->rq.opcode),
		.rkey = r->rq.rkey,
		.raddr = r->rq.raddr,
		.length = r->rq.length,
		.way = SLOT_WAYS_ANY};
	slot_enter(x->slot, e->view.attach, e->view.attach);
	atomic_thread_fence(memory_order_seq_cst);
}

static struct verdict leave(struct work *w, struct verdict v)
{
	if (w->rq_held)
		rq_token_drop(w->x, w->resp);
	slot_leave(w->x->slot);
	return v;
}

/* The receive into which the message goes; the same as before, if that was found. */
static struct verdict find_receive(struct work *w, struct respond *r, bool again)
{
	struct verdict v;

	if (!end_receives(w->resp))
		return of_step(STEP_NO_PEER);
	if (receive_hold_queue(w) != STEP_DONE)
		return of_step(STEP_BUSY);
	v = of_step(receive_find(w));
	if (v.answer != ANSWER_OK)
		return v;
	if (again && w->rq_pos != r->rq_pos) /* it was flushed */
		return of_step(STEP_NO_PEER);
	r->rq_pos = w->rq_pos;
	return ok;
}

static bool is_send(const struct work *w)
{
	return w->op->kind == OP_SEND;
}

static struct verdict begin(struct work *w, struct respond *r)
{
	struct held held;
	struct payload p;

	if (!end_receives(w->resp))
		return of_step(STEP_NO_PEER);
	if (!is_send(w) && w->op->kind != OP_WRITE)
		return refused(w, r, IBV_WC_REM_INV_REQ_ERR);
	if (w->op->takes_recv && w->resp->rx.ring.slots)
		return nak(IBV_WC_REM_OP_ERR);
	if (is_send(w))
		return find_receive(w, r, false);
	held_reset(&held);
	if (!range_remote(w, w->length, w->op->remote_access, &p, &held))
		return refused(w, r, IBV_WC_REM_ACCESS_ERR);
	return ok;
}

struct verdict respond_begin(
	struct respond *r, struct exec *x, const struct end *e, const struct request *rq)
{
	struct work w;

	*r = (struct respond){.e = e, .rq = *rq};
	enter(&w, r, x);
	return leave(&w, begin(&w, r));
}

/* The receive has no room, or no memory, for the message. */
static struct verdict receive_unfit(
	struct work *w, const struct respond *r, enum ibv_wc_status status)
{
	respond_receive_failed(w, r->rq.from_qpn, status);
	return nak(status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR);
}

/* Where n bytes at offset go, in *dst. */
static struct verdict find_place(struct work *w, struct respond *r, uint64_t offset, uint32_t n,
	struct payload *dst, struct held *held)
{
	enum ibv_wc_status status;
	struct verdict v;

	held_reset(held);
	if (is_send(w)) {
		v = find_receive(w, r, true);
		if (v.answer != ANSWER_OK)
			return v;
		w->length = offset + n;
		status = receive_range(w, dst, held);
		if (status)
			return receive_unfit(w, r, status);
		sgl_consume(&dst->l, offset);
		way_of_responder(w, dst, held);
		return ok;
	}
	if (!end_receives(w->resp))
		return of_step(STEP_NO_PEER);
	if (offset > w->length || n > w->length - offset)
		return refused(w, r, IBV_WC_REM_INV_REQ_ERR);
	w->raddr += offset;
	if (!range_remote(w, n, w->op->remote_access, dst, held))
		return refused(w, r, IBV_WC_REM_ACCESS_ERR);
	return ok;
}

/* The bytes did not get to their place. */
static struct verdict not_moved(struct work *w, const struct respond *r, enum move_result moved)
{
	if (moved == MOVE_LATER)
		return (struct verdict){.answer = ANSWER_LATER};
	if (moved == MOVE_BUSY || moved == MOVE_ANEW)
		return of_step(STEP_BUSY);
	if (!end_receives(w->resp))
		return of_step(STEP_NO_PEER);
	if (is_send(w))
		return receive_unfit(w, r, IBV_WC_LOC_PROT_ERR);
	return refused(w, r, IBV_WC_REM_ACCESS_ERR);
}

static struct verdict place(
	struct work *w, struct respond *r, uint64_t offset, const void *bytes, uint32_t n)
{
	struct payload src, dst;
	enum move_result moved;
	struct held held;
	struct verdict v = find_place(w, r, offset, n, &dst, &held);

	if (v.answer != ANSWER_OK || !n)
		return v;
	payload_of_bytes(&src, (void *)bytes, n);
	moved = carry(w, &src, &dst, &held);
	if (moved != MOVE_OK)
		return not_moved(w, r, moved);
	if (r->came < offset + n)
		r->came = offset + n;
	return ok;
}

struct verdict respond_place(
	struct respond *r, struct exec *x, uint64_t offset, const void *bytes, uint32_t n)
{
	struct work w;

	enter(&w, r, x);
	return leave(&w, place(&w, r, offset, bytes, n));
}

/* With the receive found. */
static struct verdict complete(struct work *w, const struct respond *r)
{
	const struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = r->came};
	struct received got = {.where = RQ_DIRECT};

	if (w->op->invalidates &&
		!window_invalidate_remote(w->resp, w->imm, r->rq.from_qpn, r->rq.psn))
		return refused(w, r, IBV_WC_REM_ACCESS_ERR);
	receive_fill(w, &got, r->rq.from_qpn);
	receive_note_established(w);
	receive_finish(w, &o, &got);
	return ok;
}

static struct verdict finish(struct work *w, struct respond *r)
{
	struct verdict v = ok;

	if (!end_receives(w->resp))
		return of_step(STEP_NO_PEER);
	if (!is_send(w) && r->came != r->rq.length)
		return refused(w, r, IBV_WC_REM_INV_REQ_ERR);
	if (w->op->takes_recv)
		v = find_receive(w, r, is_send(w));
	return v.answer == ANSWER_OK && w->op->takes_recv ? complete(w, r) : v;
}

struct verdict respond_end(struct respond *r, struct exec *x, const struct last_piece *last)
{
	struct work w;

	enter(&w, r, x);
	w.imm = last->imm;
	w.flags = last->solicited ? IBV_SEND_SOLICITED : 0;
	return leave(&w, finish(&w, r));
}

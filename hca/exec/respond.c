// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/respond.h"

#include "hca/exec/carry.h"
#include "hca/exec/fail.h"
#include "hca/exec/flush.h"
#include "hca/exec/op_atomic.h"
#include "hca/exec/op_flush.h"
#include "hca/exec/range.h"
#include "hca/exec/receive.h"
#include "hca/exec/way_table.h"
#include "hca/exec/window.h"
#include "pages/mapped.h"

enum { LOOK_AHEAD = 64 << 10 };

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

	if (w->resp->type != IBV_QPT_UC && !r->rq.again)
		respond_refuse(w, &who, status,
			status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR
							: IBV_EVENT_QP_REQ_ERR);
	return nak(status);
}

static struct verdict of_step(enum step s)
{
	enum answer a = s == STEP_RNR    ? ANSWER_RNR
			: s == STEP_BUSY ? ANSWER_BUSY
					 : ANSWER_NOT_READY;

	return s == STEP_DONE ? ok : (struct verdict){.answer = a};
}

static bool is_send(const struct work *w)
{
	return w->op->kind == OP_SEND;
}

static void fill_operands(struct work *w, const struct request *rq)
{
	w->length = rq->length;
	if (w->op->kind == OP_ATOMIC) {
		w->fetch_add = rq->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		w->compare_add = rq->compare_add;
		w->swap = rq->swap;
	} else if (w->op->kind == OP_FLUSH) {
		w->range_len = rq->length;
		w->flush = rq->flush;
	}
}

/* What the message has of a work request: nothing of a requester.  now: room for a copy of e. */
static void enter(struct work *w, struct end *now, const struct respond *r, struct exec *x)
{
	const struct end *e = r->e;

	*w = (struct work){.x = x,
		.asked = &r->rq,
		.resp = e,
		.mem = e,
		.mem_now = now,
		.named = e->view.attach,
		.op = op_of(r->rq.opcode),
		.rkey = r->rq.rkey,
		.raddr = r->rq.raddr,
		.way = SLOT_WAYS_ANY};
	fill_operands(w, &r->rq);
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

/* The receive that was taken before, of a queue whose slots are where they were: it waits for us.
 */
static void resume(struct work *w, struct respond *r)
{
	*w->mem_now = *r->e;
	w->mem_now->rxq = r->rxq;
	w->mem = w->mem_now;
	w->shared = true;
	w->rxq = &w->mem->rxq;
	w->rq_pos = r->rq_pos;
	w->rqe = &rxq_at(w->rxq, w->rq_pos)->rqe;
}

static void give_back(struct work *w, struct respond *r)
{
	if (r->taken)
		receive_leave(w);
	r->taken = false;
}

static struct verdict first_receive(struct work *w, struct respond *r)
{
	struct verdict v = of_step(receive_find(w));

	if (v.answer != ANSWER_OK)
		return v;
	r->rq_pos = w->rq_pos;
	r->taken = w->shared;
	if (w->shared)
		r->rxq = *w->rxq;
	return ok;
}

static struct verdict same_receive(struct work *w, struct respond *r)
{
	struct verdict v;

	if (r->taken) {
		resume(w, r);
		return ok;
	}
	v = of_step(receive_find(w));
	return v.answer == ANSWER_OK && w->rq_pos != r->rq_pos ? of_step(STEP_NO_PEER) : v;
}

/* The receive into which the message goes; again: the same as before, which may be flushed. */
static struct verdict find_receive(struct work *w, struct respond *r, bool again)
{
	if (end_receives(w->resp) && receive_hold_queue(w) != STEP_DONE)
		return of_step(STEP_BUSY);
	if (end_receives(w->resp))
		return again ? same_receive(w, r) : first_receive(w, r);
	if (r->taken)
		resume(w, r);
	give_back(w, r);
	return of_step(STEP_NO_PEER);
}

static bool is_for_this_machine(const struct end *e)
{
	return e->rxq.matches_tags || (e->type != IBV_QPT_RC && e->type != IBV_QPT_UC);
}

static struct verdict begin(struct work *w, struct respond *r)
{
	struct held held;
	struct payload p;

	if (!end_receives(w->resp))
		return of_step(STEP_NO_PEER);
	if (!is_send(w) && w->op->kind != OP_WRITE)
		return refused(w, r, IBV_WC_REM_INV_REQ_ERR);
	if (is_for_this_machine(w->resp))
		return nak(IBV_WC_REM_OP_ERR);
	if (is_send(w))
		return find_receive(w, r, false);
	held_reset(&held);
	if (!range_remote(w, w->length, w->op->remote_access, &p, &held))
		return refused(w, r, range_refusal(w, w->op->remote_access));
	return ok;
}

struct verdict respond_begin(
	struct respond *r, struct exec *x, const struct end *e, const struct request *rq)
{
	struct end now;
	struct work w;

	r->e = e;
	r->rq = *rq;
	r->came = 0;
	r->taken = false;
	respond_look_anew(r);
	enter(&w, &now, r, x);
	return leave(&w, begin(&w, r));
}

/* The receive has no room, or no memory, for the message. */
static struct verdict receive_unfit(struct work *w, struct respond *r, enum ibv_wc_status status)
{
	r->taken = false;
	respond_receive_failed(w, r->rq.from_qpn, status);
	return nak(status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR);
}

/* Where n bytes at offset of a SEND go, in *dst. */
static struct verdict place_in_receive(struct work *w, struct respond *r, uint64_t offset,
	uint32_t n, struct payload *dst, struct held *held)
{
	struct verdict v = find_receive(w, r, true);
	enum ibv_wc_status status;

	if (v.answer != ANSWER_OK)
		return v;
	w->length = n > UINT64_MAX - offset ? UINT64_MAX : offset + n; /* longer than any */
	status = receive_range(w, dst, held);
	if (status)
		return receive_unfit(w, r, status);
	sgl_consume(&dst->l, offset);
	way_of_responder(w, dst, held);
	return ok;
}

/* The same of a WRITE. */
static struct verdict place_in_range(struct work *w, struct respond *r, uint64_t offset, uint32_t n,
	struct payload *dst, struct held *held)
{
	if (!end_receives(w->resp))
		return of_step(STEP_NO_PEER);
	if (offset > w->length || n > w->length - offset)
		return refused(w, r, IBV_WC_REM_INV_REQ_ERR);
	w->raddr += offset;
	if (!range_remote(w, n, w->op->remote_access, dst, held))
		return refused(w, r, range_refusal(w, w->op->remote_access));
	return ok;
}

/* The bytes did not get to their place. */
static struct verdict not_moved(struct work *w, struct respond *r, enum move_result moved)
{
	if (moved == MOVE_LATER)
		return (struct verdict){.answer = ANSWER_LATER};
	if (moved == MOVE_BUSY || moved == MOVE_ANEW)
		return of_step(STEP_BUSY);
	if (!end_receives(w->resp)) {
		give_back(w, r);
		return of_step(STEP_NO_PEER);
	}
	if (is_send(w))
		return receive_unfit(w, r, IBV_WC_LOC_PROT_ERR);
	if (moved == MOVE_REFUSED)
		return nak(IBV_WC_REM_OP_ERR);
	return refused(w, r, IBV_WC_REM_ACCESS_ERR);
}

/*
 * Is that memory of ours there?  What the program has unmapped is an error to who asks for it, and
 * no signal to us.
 */
static bool is_there(const struct payload *p, uint64_t n, bool write)
{
	for (unsigned i = p->l.at; i < p->l.n && n && way_beneath(p)->here; i++) {
		const struct iovec *v = &p->l.v[i];
		uint64_t len = v->iov_len < n ? v->iov_len : n;

		if (!mapped_populate((uintptr_t)v->iov_base, len, write))
			return false;
		n -= len;
	}
	return true;
}

/*
 * Can n bytes be written there, of which `left` will follow one another?  Their memory is looked
 * at, too, while it is about it.
 */
static bool is_there_ahead(struct there *t, const struct payload *p, uint64_t n, uint64_t left)
{
	const struct iovec *v = &p->l.v[p->l.at];
	uint64_t from = (uintptr_t)v->iov_base;

	if (v->iov_len < n || !way_beneath(p)->here)
		return is_there(p, n, true);
	if (from >= t->from && from + n <= t->to)
		return true;
	if (left > LOOK_AHEAD)
		left = LOOK_AHEAD;
	if (left <= n || !mapped_populate(from, left, true))
		return is_there(p, n, true);
	*t = (struct there){.from = from, .to = from + left};
	return true;
}

static bool piece_is_there(const struct work *w, struct respond *r, uint64_t offset,
	const struct payload *p, uint64_t n)
{
	return is_send(w) ? is_there(p, n, true)
			  : is_there_ahead(&r->there, p, n, r->rq.length - offset);
}

static struct verdict place(
	struct work *w, struct respond *r, uint64_t offset, const void *bytes, uint32_t n)
{
	struct payload src, dst;
	enum move_result moved;
	struct held held;
	struct verdict v;

	held_reset(&held);
	v = (is_send(w) ? place_in_receive : place_in_range)(w, r, offset, n, &dst, &held);
	if (v.answer != ANSWER_OK || !n)
		return v;
	payload_of_bytes(&src, (void *)bytes, n);
	moved = piece_is_there(w, r, offset, &dst, n) ? carry(w, &src, &dst, &held)
						      : MOVE_FAULT_LOCAL;
	if (moved != MOVE_OK)
		return not_moved(w, r, moved);
	if (r->came < offset + n)
		r->came = offset + n;
	return ok;
}

struct verdict respond_place(
	struct respond *r, struct exec *x, uint64_t offset, const void *bytes, uint32_t n)
{
	struct end now;
	struct work w;

	enter(&w, &now, r, x);
	return leave(&w, place(&w, r, offset, bytes, n));
}

/* With the receive found. */
static struct verdict complete(struct work *w, struct respond *r)
{
	const struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = r->came};
	struct received got = {.where = RQ_DIRECT};
	struct verdict v = ok;

	if (w->op->invalidates &&
		!window_invalidate_remote(w->resp, w->imm, r->rq.from_qpn, r->rq.psn)) {
		v = refused(w, r, IBV_WC_REM_ACCESS_ERR);
		give_back(w, r);
		return v;
	}
	receive_fill(w, &got, r->rq.from_qpn);
	receive_note_established(w);
	r->taken = false;
	receive_finish(w, &o, &got);
	return v;
}

static struct verdict finish(struct work *w, struct respond *r)
{
	struct verdict v = ok;

	if (!is_send(w) && !end_receives(w->resp))
		return of_step(STEP_NO_PEER);
	if (!is_send(w) && r->came != r->rq.length)
		return refused(w, r, IBV_WC_REM_INV_REQ_ERR);
	if (w->op->takes_recv)
		v = find_receive(w, r, is_send(w));
	return v.answer == ANSWER_OK && w->op->takes_recv ? complete(w, r) : v;
}

struct verdict respond_end(struct respond *r, struct exec *x, const struct last_piece *last)
{
	struct end now;
	struct work w;

	enter(&w, &now, r, x);
	w.imm = last->imm;
	w.flags = last->solicited ? IBV_SEND_SOLICITED : 0;
	return leave(&w, finish(&w, r));
}

void respond_drop(struct respond *r, struct exec *x)
{
	struct end now;
	struct work w;

	if (!r->taken)
		return;
	enter(&w, &now, r, x);
	resume(&w, r);
	give_back(&w, r);
	leave(&w, ok);
}

/* ---- requests that come in one piece ---- */

/* What all of them need of the responder. */
static struct verdict allowed(struct work *w, struct respond *r, bool known)
{
	if (!end_receives(w->resp))
		return of_step(STEP_NO_PEER);
	if (!known || !w->resp->qp->max_dest_rd_atomic)
		return refused(w, r, IBV_WC_REM_INV_REQ_ERR);
	return is_for_this_machine(w->resp) ? nak(IBV_WC_REM_OP_ERR) : ok;
}

static struct verdict read_piece(
	struct work *w, struct respond *r, uint64_t offset, void *to, uint32_t n)
{
	struct verdict v = allowed(w, r, w->op->kind == OP_READ);
	struct payload src, part, dst;
	void (*pushed)(struct work * w);
	enum move_result moved = MOVE_OK;
	struct held held;

	if (v.answer != ANSWER_OK)
		return v;
	if (offset > w->length || n > w->length - offset)
		return refused(w, r, IBV_WC_REM_INV_REQ_ERR);
	held_reset(&held);
	if (!range_remote(w, w->length, w->op->remote_access, &src, &held))
		return refused(w, r, range_refusal(w, w->op->remote_access));
	sgl_consume(&src.l, offset);
	payload_head(&src, n, &part);
	payload_of_bytes(&dst, to, n);
	pushed = src.way->pushed;
	if (n)
		moved = is_there(&part, n, false) ? carry(w, &part, &dst, &held) : MOVE_FAULT_LOCAL;
	if (moved != MOVE_OK)
		return not_moved(w, r, moved);
	if (pushed && offset + n == w->length)
		pushed(w);
	return ok;
}

struct verdict respond_read(struct exec *x, const struct end *e, const struct request *rq,
	uint64_t offset, void *to, uint32_t n)
{
	struct respond r = {.e = e, .rq = *rq};
	struct end now;
	struct work w;

	enter(&w, &now, &r, x);
	return leave(&w, read_piece(&w, &r, offset, to, n));
}

static struct verdict flush(struct work *w, struct respond *r)
{
	struct payload range;
	enum move_result moved;
	struct held held;

	held_reset(&held);
	if (!flush_range(w, &range, &held))
		return refused(w, r, range_refusal(w, op_rights(w->op, w->flush)));
	moved = flush_carry_out(w, &range, &held);
	return moved == MOVE_OK ? ok : not_moved(w, r, moved);
}

/* *word: the answer of an atomic, what an ATOMIC WRITE writes. */
static struct verdict change_word(struct work *w, struct respond *r, uint64_t *word)
{
	struct payload target;
	enum move_result moved = MOVE_LATER;
	struct held held;

	if (w->raddr % sizeof *word)
		return refused(w, r, IBV_WC_REM_INV_REQ_ERR);
	held_reset(&held);
	if (!range_remote(w, sizeof *word, w->op->remote_access, &target, &held))
		return refused(w, r, range_refusal(w, w->op->remote_access));
	if (!is_there(&target, sizeof *word, true))
		moved = MOVE_FAULT_LOCAL;
	else if (!way_is_later(w, &target, &held))
		moved = atomic_carry_out(w, &target, &held, word);
	return moved == MOVE_OK ? ok : not_moved(w, r, moved);
}

static struct verdict once(struct work *w, struct respond *r, uint64_t *before)
{
	enum op_kind kind = w->op->kind;
	struct verdict v =
		allowed(w, r, kind == OP_FLUSH || kind == OP_ATOMIC || kind == OP_ATOMIC_WRITE);
	uint64_t word = r->rq.word;

	if (v.answer != ANSWER_OK)
		return v;
	if (kind == OP_FLUSH)
		return flush(w, r);
	return change_word(w, r, kind == OP_ATOMIC ? before : &word);
}

struct verdict respond_at_once(
	struct exec *x, const struct end *e, const struct request *rq, uint64_t *before)
{
	struct respond r = {.e = e, .rq = *rq};
	struct end now;
	struct work w;

	enter(&w, &now, &r, x);
	return leave(&w, once(&w, &r, before));
}

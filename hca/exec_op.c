// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec_op.h"

#include "hca/atomic_op.h"
#include "hca/carry.h"
#include "hca/exec_agent.h"
#include "hca/token.h"
#include "hca/window.h"
#include "pages/mover.h"

enum { MTU_BASE_LOG = 7 };

bool work_read(struct work *w, uint32_t pos)
{
	const struct seg_wqe *slot = end_wqe(w->req, pos);

	w->pos = pos;
	w->flags = slot->flags;
	w->num_sge = slot->num_sge;
	w->imm = slot->imm;
	w->rkey = slot->rkey;
	w->raddr = slot->raddr;
	w->op = op_of(slot->opcode);
	w->srqn = slot->aux[0] << 16 | slot->aux[1] << 8 | slot->aux[2];
	w->sge = slot->sge;
	w->inline_data = NULL;
	w->length = 0;
	if (w->op->kind >= OP_ATOMIC) {
		w->fetch_add = slot->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		w->compare_add = slot->compare_add;
		w->swap = slot->swap;
	}
	/* Our lists hold so many, whatever the slots of a peer's queue could. */
	if (w->num_sge > w->req->sge_max || w->num_sge > SGL_MAX - 1)
		return false;
	if (w->flags & WQE_INLINE) {
		w->inline_data = (const uint8_t *)slot->sge;
		w->length = slot->inline_len;
		return w->op->kind != OP_NONE && op_may_be_inline(w->op) &&
		       w->length <= w->req->sq_stride - sizeof *slot;
	}
	for (unsigned i = 0; i < w->num_sge; i++)
		w->length += w->sge[i].length;
	return w->op->kind != OP_NONE;
}

/* ---- the two ends' failures ---- */

static const enum seg_counter error_counters[] = {
	[IBV_WC_LOC_PROT_ERR] = CTR_ERR_LOC_PROT,
	[IBV_WC_LOC_LEN_ERR] = CTR_ERR_LOC_LEN,
	[IBV_WC_REM_ACCESS_ERR] = CTR_ERR_REM_ACCESS,
	[IBV_WC_REM_INV_REQ_ERR] = CTR_ERR_REM_INV_REQ,
	[IBV_WC_REM_OP_ERR] = CTR_ERR_REM_OP,
	[IBV_WC_RNR_RETRY_EXC_ERR] = CTR_ERR_RNR,
	[IBV_WC_RETRY_EXC_ERR] = CTR_ERR_RETRY,
};

static void count_error(struct exec *x, enum ibv_wc_status status)
{
	if (status < sizeof error_counters / sizeof *error_counters && error_counters[status])
		count_add(x, error_counters[status], 1);
}

void work_fail(struct work *w, enum ibv_wc_status status)
{
	const struct outcome o = {.status = status};

	count_error(w->x, status);
	qp_set_send_error(w->req);
	complete_send(w->x, w->req, w->pos, &o);
	qp_flush(w->x, w->req, true);
}

enum step work_failed(struct work *w, enum ibv_wc_status status)
{
	work_fail(w, status);
	return STEP_FAILED;
}

/* The responder's verdict on a request; a UC requester never hears of it. */
static enum step blame(struct work *w, enum ibv_wc_status status)
{
	if (w->req->type == IBV_QPT_UC)
		return work_drop(w, CTR_DROP_ACCESS);
	return work_failed(w, status);
}

/* The responder found the request at fault: it goes to ERR too, with an event. */
static enum step fail_both(struct work *w, enum ibv_wc_status status, enum ibv_event_type event)
{
	if (w->req->type != IBV_QPT_UC && qp_set_error(w->resp)) {
		raise_qp_event(w->x, w->resp, event);
		qp_flush(w->x, w->resp, false);
	}
	return blame(w, status);
}

/* The receive that find_receive() found is consumed. */
static void finish_receive(struct work *w, const struct outcome *o, const struct received *r)
{
	if (w->shared)
		complete_shared(w->x, w->resp, w->mem, w->rq_pos, o, r);
	else
		complete_recv(w->x, w->resp, w->rq_pos, o, r);
}

/* It is not. */
static void leave_receive(struct work *w)
{
	if (w->shared)
		shared_untake(w->x, w->mem, w->rq_pos);
}

/* The responder's own receive is at fault: it completes in error there. */
static enum step fail_receive(
	struct work *w, enum ibv_wc_status recv_status, enum ibv_wc_status send_status)
{
	const struct outcome o = {.status = recv_status};
	const struct received r = {.opcode = w->op->recv_wc, .src_qp = w->req->qpn};

	count_error(w->x, recv_status);
	qp_set_error(w->resp);
	finish_receive(w, &o, &r);
	qp_flush(w->x, w->resp, false);
	return blame(w, send_status);
}

/* ---- when bytes were not moved ---- */

/* Did the move fail on the requester's memory?  (The mover knows only local and remote.) */
static bool requester_fault(enum move_result r, bool requester_here)
{
	return r == (requester_here ? MOVE_FAULT_LOCAL : MOVE_FAULT_REMOTE);
}

/*
 * A region is changing over: the request begins anew when that is through.  Its owner may have
 * died in the middle of it.
 */
static enum step busy(struct work *w)
{
	const struct view *v = w->req->view.pid ? &w->req->view : &w->mem->view;

	w->busy = false;
	if (v->pid && !carry_alive(w, v))
		return STEP_NO_PEER;
	count_add(w->x, CTR_MAP_BUSY, 1);
	return STEP_BUSY;
}

/* What to do when a move of an RDMA operation or of a SEND did not end well. */
static enum step move_failed(struct work *w, enum move_result r, enum ibv_wc_status remote)
{
	if (r == MOVE_GONE)
		return STEP_NO_PEER;
	if (r == MOVE_LATER)
		return STEP_LATER;
	if (r == MOVE_BUSY)
		return STEP_BUSY;
	if (r == MOVE_LATE)
		return work_failed(w, IBV_WC_RETRY_EXC_ERR);
	if (r == MOVE_STOPPED && w->busy)
		return busy(w);
	if (r == MOVE_STOPPED) {
		if (end_state(w->req) != IBV_QPS_RTS) {
			qp_flush(w->x, w->req, true);
			return STEP_FAILED;
		}
		return end_receives(w->resp) ? blame(w, remote) : STEP_NO_PEER;
	}
	if (r == MOVE_REFUSED)
		return blame(w, IBV_WC_REM_OP_ERR);
	if (requester_fault(r, end_is_here(w->req)))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (remote == IBV_WC_REM_ACCESS_ERR)
		return fail_both(w, remote, IBV_EVENT_QP_ACCESS_ERR);
	return blame(w, remote);
}

/* (Lists and held are large: they are never zeroed whole on the hot path.) */
bool work_source(struct work *w, struct payload *p, struct held *held)
{
	held->n = 0;
	held->busy = p->mapped = false;
	sgl_reset(&p->l);
	p->held_at = 0;
	p->here = true;
	if (w->inline_data) {
		sgl_add(&p->l, (uintptr_t)w->inline_data, w->length);
		return true;
	}
	if (w->length && w->length <= SEG_PARK_BYTES &&
		atomic_load_explicit(&w->req->qp->parked_copy, memory_order_acquire) ==
			w->pos + 1) {
		sgl_add(&p->l, (uintptr_t)w->req->park_buf, w->length);
		return true;
	}
	p->here = end_is_here(w->req);
	if (!resolve_sges(&w->req->view, w->req->pd, w->sge, w->num_sge, w->length, 0, &p->l, held))
		return false;
	carry_reach(w->req, p, held);
	return true;
}

void work_park_copy(struct work *w)
{
	struct held held;
	struct payload p;

	if (w->op->kind != OP_SEND || w->inline_data || !w->length || w->length > SEG_PARK_BYTES ||
		!end_is_here(w->req) || !work_source(w, &p, &held))
		return;
	sgl_gather(&p.l, w->req->park_buf);
	atomic_store_explicit(&w->req->qp->parked_copy, w->pos + 1, memory_order_release);
}

/* ---- the requester's completion ---- */

static void count_packets(struct work *w)
{
	unsigned mtu_log = MTU_BASE_LOG + (w->req->qp->mtu & 7);
	uint64_t n = (w->length + (1u << mtu_log) - 1) >> mtu_log;
	_Atomic uint64_t *packets = &w->req->qp->packets;
	uint64_t v = atomic_load_explicit(packets, memory_order_relaxed);

	atomic_store_explicit(packets, v + (n ? n : 1), memory_order_relaxed);
}

enum step work_drop(struct work *w, enum seg_counter why)
{
	count_add(w->x, why, 1);
	return work_succeed(w);
}

enum step work_succeed(struct work *w)
{
	const struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};

	count_packets(w);
	complete_send(w->x, w->req, w->pos, &o);
	return STEP_DONE;
}

/* ---- SEND and the immediate of a WRITE ---- */

enum step work_find_ring(struct work *w, const struct end **at)
{
	const struct end *e = *at;
	uint32_t index = e->rx.index, gen = e->rx.gen;

	if (atomic_load_explicit(&e->rx.entry->rx.resizes, memory_order_seq_cst) & 1)
		return STEP_BUSY;
	if (e != w->mem_now)
		*w->mem_now = *e;
	if (rxq_ref_init(&w->mem_now->rx, &w->mem_now->view, index) || w->mem_now->rx.gen != gen)
		return STEP_NO_PEER;
	*at = w->mem_now;
	return STEP_DONE;
}

/* From a shared queue.  The QP's rq_token excludes the end of its receiving (last_wqe()). */
static enum step find_shared(struct work *w)
{
	enum step s;

	if (!rxq_in_place(&w->mem->rx)) {
		s = work_find_ring(w, &w->mem);
		if (s != STEP_DONE)
			return s;
	}
	if (!shared_take(w->x, w->mem, &w->rq_pos))
		return STEP_RNR;
	w->shared = true;
	w->rqe = &rxq_at(&w->mem->rx, w->rq_pos)->rqe;
	if (end_receives(w->resp))
		return STEP_DONE;
	leave_receive(w);
	return STEP_NO_PEER;
}

/*
 * Finds the receive that this request will consume.  STEP_DONE: w->rqe is it; else why not.  Only
 * the holder of the responder's rq_token may complete receives.
 */
static enum step find_receive(struct work *w)
{
	uint32_t pos;

	if (!w->resp->rq && !w->mem->rx.ring.slots)
		return STEP_RNR;
	if (!w->rq_held) {
		if (!token_take(&w->resp->qp->rq_token, w->x->owner))
			return STEP_NO_PEER; /* a flush is going on there */
		w->rq_held = true;
	}
	w->shared = false;
	if (w->mem->rx.ring.slots)
		return find_shared(w);
	pos = atomic_load_explicit(&w->resp->qp->rq_head, memory_order_relaxed);
	w->rq_pos = pos;
	w->rqe = end_rqe(w->resp, pos);
	if (atomic_load_explicit(&w->rqe->posted, memory_order_acquire) != pos + 1)
		return STEP_RNR;
	/* An RTR that turned to ERR meanwhile is seen here: its flusher waits for our token. */
	if (!end_receives(w->resp))
		return STEP_NO_PEER;
	prefetch_write(&w->rqe->done);
	prefetch_read(end_rqe(w->resp, pos + 1));
	prefetch_write(&end_rqe(w->resp, pos + 1)->done);
	return STEP_DONE;
}

/* The SGEs of that receive. */
unsigned receive_sges(const struct seg_rqe *r, unsigned max, struct seg_sge *out)
{
	unsigned n = r->num_sge < max ? r->num_sge : max;

	if (n > SGL_MAX - 1)
		n = SGL_MAX - 1;
	for (unsigned i = 0; i < n; i++)
		out[i] = i < RQ_SGE_NEAR ? r->near[i] : r->far[i - RQ_SGE_NEAR];
	return n;
}

static uint64_t sge_total(const struct seg_sge *sge, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += sge[i].length;
	return sum;
}

/* Where it wants its bytes.  0, or why it cannot have them. */
static enum ibv_wc_status receive_list(struct work *w, struct payload *dst, struct held *held)
{
	struct seg_sge sge[SGL_MAX];
	unsigned max = w->shared ? w->mem->rx.sge_max : w->resp->rq_sge_max;
	uint32_t pd = w->shared ? w->mem->rx.pd : w->resp->pd;
	unsigned n = receive_sges(w->rqe, max, sge);

	if (w->length > sge_total(sge, n))
		return IBV_WC_LOC_LEN_ERR;
	dst->here = end_is_here(w->mem);
	dst->mapped = false;
	dst->held_at = held->n;
	sgl_reset(&dst->l);
	return resolve_sges(
		       &w->mem->view, pd, sge, n, w->length, IBV_ACCESS_LOCAL_WRITE, &dst->l, held)
		       ? IBV_WC_SUCCESS
		       : IBV_WC_LOC_PROT_ERR;
}

/* True if the payload ring lacks room up to position end; reads the owner's line only if so. */
static bool ring_full(struct seg_qp *q, uint32_t end)
{
	uint32_t head = atomic_load_explicit(&q->ring_head_seen, memory_order_relaxed);

	if (end - head <= SEG_RING_BYTES)
		return false;
	head = atomic_load_explicit(&q->ring_head, memory_order_acquire);
	atomic_store_explicit(&q->ring_head_seen, head, memory_order_relaxed);
	return end - head > SEG_RING_BYTES;
}

/* Room for len contiguous bytes of the payload ring, or NULL. */
static uint8_t *ring_room(const struct end *e, uint32_t len, uint32_t *pos)
{
	uint32_t tail = atomic_load_explicit(&e->qp->ring_tail, memory_order_relaxed);
	uint32_t at = tail % SEG_RING_BYTES;

	len = (len + CACHE_LINE - 1) & ~(CACHE_LINE - 1u);
	if (at + len > SEG_RING_BYTES)
		tail += SEG_RING_BYTES - at;
	if (ring_full(e->qp, tail + len))
		return NULL;
	*pos = tail;
	atomic_store_explicit(&e->qp->ring_tail, tail + len, memory_order_relaxed);
	prefetch_write(e->ring + (tail + len) % SEG_RING_BYTES);
	return e->ring + tail % SEG_RING_BYTES;
}

/* Room for the payload of a receive that its owner will copy out, or NULL. */
static uint8_t *near_room(struct work *w, struct received *r)
{
	uint8_t *room;

	if (w->length <= RQ_INLINE_MAX) {
		r->where = RQ_IN_SLOT;
		count_add(w->x, CTR_SEND_INLINE, 1);
		return w->rqe->payload;
	}
	if (w->length > SEG_RING_MSG_MAX)
		return NULL;
	r->where = w->shared ? RQ_IN_BOUNCE : RQ_IN_RING;
	room = w->shared ? rxq_bounce(&w->mem->rx, w->rq_pos)
			 : ring_room(w->resp, w->length, &r->ring_pos);
	if (room)
		count_add(w->x, CTR_SEND_RING, 1);
	return room;
}

/* Puts the payload where the receive will find it, by the cheapest way. */
static enum move_result deliver(struct work *w, struct payload *src, struct payload *dst,
	struct received *r, struct held *held)
{
	uint8_t *room;

	r->where = RQ_DIRECT;
	if (!w->length)
		return MOVE_OK;
	room = src->here && !dst->here ? near_room(w, r) : NULL;
	if (room) {
		sgl_gather(&src->l, room);
		return MOVE_OK;
	}
	r->where = RQ_DIRECT;
	count_add(w->x, CTR_SEND_MOVER, 1);
	carry_reach(w->mem, dst, held);
	return carry(w, src, w->req, dst, w->mem, held);
}

static void fill_received(const struct work *w, struct received *r)
{
	r->opcode = w->op->recv_wc;
	r->wc_flags = w->op->has_imm ? IBV_WC_WITH_IMM : w->op->invalidates ? IBV_WC_WITH_INV : 0;
	r->imm = w->imm;
	r->src_qp = w->req->qpn;
	r->solicited = w->flags & IBV_SEND_SOLICITED;
}

/* The first message of a connection may reach a responder that is still in RTR. */
static void note_established(struct work *w)
{
	if (!w->shared && w->rq_pos == w->resp->qp->rq_base && end_state(w->resp) == IBV_QPS_RTR)
		raise_qp_event(w->x, w->resp, IBV_EVENT_COMM_EST);
}

/* The payload of a SEND did not get into the receive. */
static enum step send_failed(struct work *w, enum move_result moved, bool src_here)
{
	enum step s;

	if (moved == MOVE_FAULT_LOCAL || moved == MOVE_FAULT_REMOTE) {
		if (!requester_fault(moved, src_here))
			return fail_receive(w, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
		s = work_failed(w, IBV_WC_LOC_PROT_ERR);
	} else {
		s = move_failed(w, moved, IBV_WC_REM_OP_ERR);
	}
	leave_receive(w);
	return s;
}

static enum step do_send(struct work *w)
{
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct received r = {.where = RQ_DIRECT};
	struct held held;
	struct payload src, dst;
	enum move_result moved;
	enum ibv_wc_status status;
	enum step s;

	if (!work_source(w, &src, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	s = find_receive(w);
	if (s != STEP_DONE)
		return s;
	status = receive_list(w, &dst, &held);
	if (status)
		return fail_receive(w, status,
			status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR);
	moved = deliver(w, &src, &dst, &r, &held);
	if (moved != MOVE_OK)
		return send_failed(w, moved, src.here);
	if (w->op->invalidates && !window_invalidate_remote(w->resp, w->imm, w->req, w->pos)) {
		s = fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		leave_receive(w);
		return s;
	}
	fill_received(w, &r);
	note_established(w);
	finish_receive(w, &o, &r);
	return work_succeed(w);
}

/* ---- RDMA ---- */

/* For the owner, who learns whether mapping the region paid.  No write once it did. */
static void note_use(struct seg_mr *mr)
{
	uint32_t ops = atomic_load_explicit(&mr->ops, memory_order_relaxed);

	if (ops < MR_OPS_ENOUGH)
		atomic_store_explicit(&mr->ops, ops + 1, memory_order_relaxed);
}

/* How the pages of the range that was resolved last are reached: enum mr_share. */
static uint32_t range_share(const struct held *held)
{
	return held->mr[held->n - 1].share;
}

/* The responder's side of an RDMA operation: the rkey and the QP must both allow it. */
static bool remote_range(struct work *w, uint64_t len, struct payload *p, struct held *held)
{
	sgl_reset(&p->l);
	p->held_at = held->n;
	p->here = end_is_here(w->mem);
	p->mapped = false;
	if (!(w->resp->qp->access & w->op->remote_access))
		return false;
	if (!len)
		return true;
	if (!resolve_remote(w->mem, w->rkey, w->raddr, len, w->op->remote_access, &p->l, held))
		return false;
	if (range_share(held) == MR_MAPPED)
		note_use(held->mr[held->n - 1].mr);
	carry_reach(w->mem, p, held);
	return true;
}

static enum step do_write(struct work *w)
{
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct held held;
	struct payload src, dst;
	enum move_result moved;
	enum step s;

	if (!work_source(w, &src, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (!remote_range(w, w->length, &dst, &held))
		return fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	if (w->op->takes_recv) {
		s = find_receive(w);
		if (s != STEP_DONE)
			return s;
	}
	moved = carry(w, &src, w->req, &dst, w->mem, &held);
	if (moved != MOVE_OK) {
		s = move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
		if (w->op->takes_recv)
			leave_receive(w);
		return s;
	}
	if (w->op->takes_recv) {
		struct received r = {.where = RQ_DIRECT};

		fill_received(w, &r);
		note_established(w);
		finish_receive(w, &o, &r);
	}
	return work_succeed(w);
}

/* The requester's buffer of a READ or an atomic; false: an lkey does not allow it. */
static bool sink(struct work *w, struct payload *p, struct held *held)
{
	held->n = 0;
	held->busy = p->mapped = false;
	sgl_reset(&p->l);
	p->held_at = 0;
	p->here = end_is_here(w->req);
	if (!resolve_sges(&w->req->view, w->req->pd, w->sge, w->num_sge, w->length,
		    IBV_ACCESS_LOCAL_WRITE, &p->l, held))
		return false;
	carry_reach(w->req, p, held);
	return true;
}

/* READs and atomics need resources that both ends agreed on. */
static bool no_rd_atomic(struct work *w, enum step *s)
{
	if (!w->req->qp->max_rd_atomic) {
		*s = work_failed(w, IBV_WC_LOC_QP_OP_ERR);
		return true;
	}
	if (!w->resp->qp->max_dest_rd_atomic) {
		*s = fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		return true;
	}
	return false;
}

static enum step do_read(struct work *w)
{
	struct held held;
	struct payload src, dst;
	enum move_result moved;
	enum step s;

	if (!sink(w, &dst, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (no_rd_atomic(w, &s))
		return s;
	if (!remote_range(w, w->length, &src, &held))
		return fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	moved = carry(w, &src, w->mem, &dst, w->req, &held);
	if (moved != MOVE_OK)
		return move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	return work_succeed(w);
}

/* A word of the executor's own. */
static void payload_of_word(struct payload *p, uint64_t *word)
{
	p->here = true;
	p->mapped = false;
	p->held_at = 0;
	sgl_reset(&p->l);
	sgl_add(&p->l, (uintptr_t)word, sizeof *word);
}

/* Either end's memory is only reached by an agent, which needs a thread that may sleep. */
static bool agent_due(const struct work *w)
{
	return (view_by_agent(&w->req->view) || view_by_agent(&w->mem->view)) &&
	       exec_agent_later(w);
}

/*
 * A word of a mapped region, where everybody uses the CPU's own atomics: never under the token,
 * even if it cannot be reached from here.  MOVE_OK: it can.
 */
static enum move_result mapped_word(
	struct work *w, const struct payload *target, _Atomic uint64_t **word)
{
	*word = target->l.v[0].iov_base;
	if (!target->here || (uintptr_t)*word % sizeof **word)
		return MOVE_REFUSED;
	if (target->mapped && !carry_alive(w, &w->mem->view))
		return MOVE_GONE;
	count_add(w->x, CTR_MAP_ATOMICS, 1);
	return MOVE_OK;
}

/* The update itself, at the responder's target. */
static enum move_result update(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before)
{
	struct move m = {.pid = w->mem->view.pid, .remote = &target->l};
	_Atomic uint64_t *word;
	enum move_result moved;

	if (held->busy)
		return carry_busy(w);
	if (range_share(held) == MR_MAPPED) {
		moved = mapped_word(w, target, &word);
		if (moved == MOVE_OK)
			*before = atomic_op_mapped(w, word);
		return moved;
	}
	if (view_by_agent(&w->mem->view))
		return exec_agent_atomic(w, &m, held, before);
	if (!atomic_op_begin(w->x, w->mem->view.seg))
		return MOVE_BUSY;
	moved = atomic_op_apply(w, (uintptr_t)target->l.v[0].iov_base, before);
	atomic_op_end(w->x, w->mem->view.seg);
	if (moved == MOVE_REFUSED && exec_agent_refused(&w->mem->view))
		return MOVE_LATER;
	return moved;
}

static enum step do_atomic(struct work *w)
{
	struct held held;
	struct payload target, result, old;
	enum move_result moved;
	uint64_t before;
	enum step s;

	if (w->length != sizeof before)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (!sink(w, &result, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (no_rd_atomic(w, &s))
		return s;
	if (w->raddr % sizeof before)
		return fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	if (!remote_range(w, sizeof before, &target, &held))
		return fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	/* Before the update: it must not be done twice. */
	if (agent_due(w))
		return STEP_LATER;
	moved = update(w, &target, &held, &before);
	if (moved != MOVE_OK)
		return move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	payload_of_word(&old, &before);
	moved = carry(w, &old, w->mem, &result, w->req, &held);
	if (moved != MOVE_OK)
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	count_add(w->x, CTR_ATOMICS, 1);
	return work_succeed(w);
}

/* ---- ATOMIC WRITE and FLUSH ---- */

/* The requester's 8 bytes, wherever they are. */
static enum move_result fetch_word(struct work *w, struct held *held, uint64_t *word)
{
	struct payload src, here;

	if (!work_source(w, &src, held))
		return MOVE_FAULT_LOCAL;
	payload_of_word(&here, word);
	return carry(w, &src, w->req, &here, w->req, held);
}

static enum move_result store_word(
	struct work *w, struct payload *target, const struct held *held, uint64_t word)
{
	_Atomic uint64_t *there;
	struct payload here;
	enum move_result moved;

	if (held->busy)
		return carry_busy(w);
	if (range_share(held) == MR_MAPPED) {
		moved = mapped_word(w, target, &there);
		if (moved == MOVE_OK)
			atomic_store_explicit(there, word, memory_order_seq_cst);
		return moved;
	}
	payload_of_word(&here, &word);
	if (view_by_agent(&w->mem->view))
		return carry(w, &here, w->req, target, w->mem, held);
	if (!atomic_op_begin(w->x, w->mem->view.seg))
		return MOVE_BUSY;
	moved = atomic_op_write(w, (uintptr_t)target->l.v[0].iov_base, word);
	atomic_op_end(w->x, w->mem->view.seg);
	if (moved == MOVE_REFUSED && exec_agent_refused(&w->mem->view))
		return MOVE_LATER;
	return moved;
}

static enum step do_atomic_write(struct work *w)
{
	struct held held;
	struct payload target;
	enum move_result moved;
	uint64_t word;
	enum step s;

	if (w->length != sizeof word)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (agent_due(w))
		return STEP_LATER;
	moved = fetch_word(w, &held, &word);
	if (moved == MOVE_STOPPED && w->busy)
		return busy(w);
	if (moved != MOVE_OK)
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (no_rd_atomic(w, &s))
		return s;
	if (w->raddr % sizeof word)
		return fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	if (!remote_range(w, sizeof word, &target, &held))
		return fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	moved = store_word(w, &target, &held, word);
	if (moved != MOVE_OK)
		return move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	return work_succeed(w);
}

/*
 * Whatever this QP wrote before is in place already, visible to all: the copies were made by a
 * CPU, in the order of the queue.  What is left are the checks, and a fence for copies within
 * the process.
 */
static enum step do_flush(struct work *w)
{
	struct held held = {.n = 0};
	struct payload range;
	enum step s;

	if (no_rd_atomic(w, &s))
		return s;
	if (!remote_range(w, w->compare_add, &range, &held))
		return fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	atomic_thread_fence(memory_order_seq_cst);
	return work_succeed(w);
}

/* ---- requests that the peer does not hear of ---- */

/*
 * Is somebody still executing what comes from the peer, who may have looked at a key that is void
 * now?  One that began since does not count: the slot remembers which run it was.
 */
static bool peer_runs(const struct work *w)
{
	struct seg_wqe *slot = end_wqe(w->req, w->pos);
	uint64_t now;

	if (!w->resp)
		return false;
	now = atomic_load_explicit(&w->resp->qp->token, memory_order_seq_cst);
	if (!token_attach(now) || (w->swap && (w->swap ^ now) & TOKEN_GEN_MASK))
		return false;
	slot->swap = now;
	return true;
}

static enum step do_local(struct work *w)
{
	const struct outcome o = {.status = IBV_WC_SUCCESS};

	if (w->op->kind == OP_BIND) {
		if (!window_bind(w))
			return work_failed(w, IBV_WC_MW_BIND_ERR);
	} else {
		if (!window_invalidate(w->req, w->imm, w->req, w->pos))
			return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
		atomic_thread_fence(memory_order_seq_cst);
		if (peer_runs(w))
			return STEP_BUSY;
	}
	complete_send(w->x, w->req, w->pos, &o);
	return STEP_DONE;
}

/* ---- the responder's readiness, and dispatch ---- */

static bool types_match(const struct work *w)
{
	if (w->req->type == IBV_QPT_XRC_SEND)
		return w->resp->type == IBV_QPT_XRC_RECV;
	return w->req->type == w->resp->type;
}

/*
 * True if resp is the other end of this very connection and can take requests.  Both must have
 * found each other: who takes memory or a QP away waits for the processes it knows.  (UC starts
 * anew with any first packet, whatever its PSN.)
 */
static bool responder_ready(const struct work *w)
{
	const struct seg_qp *q = w->resp->qp;

	if (view_dead(&w->resp->view) || !end_receives(w->resp) || !types_match(w) ||
		w->req->qp->peer_attach != w->resp->view.attach)
		return false;
	return q->dest_qpn == w->req->qpn && q->peer_attach == w->req->view.attach &&
	       (q->rq_psn == w->req->qp->sq_psn || w->req->type == IBV_QPT_UC);
}

/* XRC: memory and receives are those of the shared receive queue that the request names. */
static bool find_memory(struct work *w)
{
	w->mem = w->x->find_srq ? w->x->find_srq(w, w->srqn) : NULL;
	return w->mem && w->mem->type == SEG_TYPE_XRC_SRQ && rxq_live(&w->mem->rx) &&
	       w->mem->qp->xrcd == w->resp->qp->xrcd;
}

enum step work_execute(struct work *w)
{
	if (w->length > 1ull << 31)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (op_is_local(w->op))
		return do_local(w);
	if (!responder_ready(w))
		return STEP_NO_PEER;
	if (w->req->type == IBV_QPT_XRC_SEND && !find_memory(w)) {
		w->mem = w->resp;
		return fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	}
	switch (w->op->kind) {
	case OP_SEND:
		if (w->mem->recv_cq.cq)
			cq_prefetch(&w->mem->recv_cq);
		return do_send(w);
	case OP_WRITE:
		return do_write(w);
	case OP_READ:
		return do_read(w);
	case OP_ATOMIC:
		return do_atomic(w);
	case OP_ATOMIC_WRITE:
		return do_atomic_write(w);
	case OP_FLUSH:
		return do_flush(w);
	default:
		return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
	}
}

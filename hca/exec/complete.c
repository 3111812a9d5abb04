// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/complete.h"

#include "base/clock.h"

static void push(
	struct exec *x, const struct end *e, const struct cq_ref *cq, bool recv, bool solicited)
{
	if (!announce_ticket(x, &e->view, cq, ticket_make(e->index, recv, end_gen(e)), solicited))
		qp_set_error(e);
}

void complete_send(struct exec *x, const struct end *e, uint32_t pos, const struct outcome *o)
{
	struct seg_wqe *w = end_wqe(e, pos);
	bool failed = o->status != IBV_WC_SUCCESS;

	if (failed || (w->flags & WQE_SIGNALED)) {
		w->status = o->status;
		w->byte_len = o->byte_len;
		w->vendor_err = o->vendor_err;
		if (e->stamps & STAMP_SEND)
			atomic_store_explicit(
				end_wqe_stamp(e, pos), clock_ns(), memory_order_relaxed);
		atomic_store_explicit(&w->done, pos + 1, memory_order_release);
		push(x, e, &e->send_cq, false, failed || (w->flags & IBV_SEND_SOLICITED));
	}
	atomic_store_explicit(&e->qp->sq_head, pos + 1, memory_order_release);
}

void complete_recv(struct exec *x, const struct end *e, uint32_t pos, const struct outcome *o,
	const struct received *r)
{
	struct seg_rqe *w = end_rqe(e, pos);

	w->status = o->status;
	w->opcode = r->opcode;
	w->wc_flags = r->wc_flags;
	w->where = r->where;
	w->byte_len = o->byte_len;
	w->imm = r->imm;
	w->src_qp = r->src_qp;
	w->vendor_err = o->vendor_err;
	w->ring_pos = r->ring_pos;
	if (e->stamps & STAMP_RECV)
		atomic_store_explicit(end_rqe_stamp(e, pos), clock_ns(), memory_order_relaxed);
	/* The commit point: an executor that dies before it leaves the receive unconsumed. */
	atomic_store_explicit(&w->done, pos + 1, memory_order_release);
	push(x, e, &e->recv_cq, true, r->solicited || o->status != IBV_WC_SUCCESS);
	atomic_store_explicit(&e->qp->rq_head, pos + 1, memory_order_release);
}

/* A completion that a dead executor wrote but perhaps never announced: announce it (again). */
static void announce_again(struct exec *x, const struct end *e, uint32_t pos, bool recv)
{
	const struct cq_ref *cq = recv ? &e->recv_cq : &e->send_cq;

	atomic_fetch_add_explicit(&cq->cq->surplus, 1, memory_order_relaxed);
	push(x, e, cq, recv, true);
	atomic_store_explicit(
		recv ? &e->qp->rq_head : &e->qp->sq_head, pos + 1, memory_order_release);
}

void complete_send_again(struct exec *x, const struct end *e, uint32_t pos)
{
	announce_again(x, e, pos, false);
}

void complete_recv_again(struct exec *x, const struct end *e, uint32_t pos)
{
	announce_again(x, e, pos, true);
}

void complete_note(struct exec *x, const struct end *e)
{
	announce_ticket(x, &e->view, &e->recv_cq, ticket_make(e->index, false, end_gen(e)), false);
}

void raise_event(struct exec *x, const struct view *v, uint32_t index, enum ibv_event_type type)
{
	uint32_t bit = 1u << type;

	if (atomic_fetch_or_explicit(&v->seg->qp[index].events, bit, memory_order_seq_cst) & bit)
		return;
	atomic_fetch_or_explicit(
		&v->seg->qp_event_map[index / 64], 1ull << index % 64, memory_order_seq_cst);
	x->fire(v->attach, 0, NULL, x->arg);
}

static bool any_bit(const _Atomic uint64_t *map, uint32_t bits)
{
	for (uint32_t i = 0; i * 64 < bits; i++)
		if (atomic_load_explicit(&map[i], memory_order_acquire))
			return true;
	return false;
}

bool has_async_event(const struct seg *seg)
{
	uint32_t qps = atomic_load_explicit(&seg->hdr.qps_used, memory_order_acquire);
	uint32_t cqs = atomic_load_explicit(&seg->hdr.cqs_used, memory_order_acquire);

	return atomic_load_explicit(&seg->hdr.port_events, memory_order_acquire) ||
	       any_bit(seg->qp_event_map, qps < SEG_QPS ? qps : SEG_QPS) ||
	       any_bit(seg->cq_event_map, cqs < SEG_CQS ? cqs : SEG_CQS);
}

void raise_qp_event(struct exec *x, const struct end *e, enum ibv_event_type type)
{
	raise_event(x, &e->view, e->index, type);
}

bool qp_set_error(const struct end *e)
{
	uint32_t s = atomic_load_explicit(&e->qp->state, memory_order_acquire);

	for (;;) {
		uint32_t st = s & QPS_STATE_MASK;

		if (s >> QPS_GEN_SHIFT != end_gen(e) || !(s & QPS_LIVE) || st == IBV_QPS_RESET ||
			st == IBV_QPS_ERR)
			return false;
		if (atomic_compare_exchange_weak_explicit(&e->qp->state, &s,
			    (s & ~(uint32_t)QPS_STATE_MASK) | IBV_QPS_ERR, memory_order_seq_cst,
			    memory_order_acquire)) {
			fence_after_rmw();
			return true;
		}
	}
}

void qp_set_send_error(const struct end *e)
{
	uint32_t base = end_gen(e) << QPS_GEN_SHIFT | QPS_LIVE;
	uint32_t s = base | IBV_QPS_RTS;

	if (e->type != IBV_QPT_UC && e->type != IBV_QPT_UD) {
		qp_set_error(e);
		return;
	}
	atomic_compare_exchange_strong_explicit(
		&e->qp->state, &s, base | IBV_QPS_SQE, memory_order_seq_cst, memory_order_relaxed);
}

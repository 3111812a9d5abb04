// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/exec_rxq.h"

#include "base/clock.h"
#include "hca/seg/tm_list.h"

bool exec_rxq_take(struct exec *x, const struct end *e, uint32_t *pos)
{
	struct seg_rxq *q = &e->rxq.entry->rxq;
	uint32_t limit, left, taken;

	if (!rxq_take(&e->rxq.ring, x->attach, pos))
		return false;
	if (e->type == IBV_QPT_UD && end_owns_rxq(e))
		return true; /* it has no limit to count for */
	/* Who sets the limit looks at the count after that: one of the two sees the other. */
	taken = atomic_fetch_add_explicit(&q->taken, 1, memory_order_seq_cst) + 1;
	limit = atomic_load_explicit(&q->limit, memory_order_seq_cst);
	if (!limit)
		return true;
	left = atomic_load_explicit(&q->posted, memory_order_relaxed) - taken;
	if ((int32_t)left < (int32_t)limit &&
		atomic_compare_exchange_strong_explicit(
			&q->limit, &limit, 0, memory_order_seq_cst, memory_order_relaxed))
		raise_event(x, &e->view, e->rxq.index, IBV_EVENT_SRQ_LIMIT_REACHED);
	return true;
}

void exec_rxq_untake(struct exec *x, const struct end *e, uint32_t pos)
{
	if (rxq_untake(&e->rxq.ring, pos & e->rxq.ring.mask, x->attach))
		atomic_fetch_add_explicit(
			&e->rxq.entry->rxq.taken, UINT32_MAX, memory_order_relaxed);
}

/*
 * A rendezvous completes twice: when it matched, and when its data is there.  It is rare: out of
 * the way of all others.
 */
static __attribute__((noinline)) bool push_twice(struct exec *x, const struct view *v,
	const struct cq_ref *cq, uint64_t ticket, bool solicited)
{
	return announce_ticket(x, v, cq, ticket, solicited) &&
	       announce_ticket(x, v, cq, ticket, solicited);
}

static inline bool push_rxq(struct exec *x, const struct view *v, const struct cq_ref *cq,
	const struct rxq_ref *rxq, uint32_t pos, bool solicited)
{
	uint64_t ticket = ticket_make_rxq(rxq->index, pos);

	return rxq_at(rxq, pos)->rqe.phase ? push_twice(x, v, cq, ticket, solicited)
					   : announce_ticket(x, v, cq, ticket, solicited);
}

void exec_rxq_complete(struct exec *x, const struct end *e, const struct end *at,
	const struct rxq_ref *rxq, uint32_t pos, const struct outcome *o, const struct received *r)
{
	const struct cq_ref *cq = at->type == SEG_TYPE_XRC_SRQ ? &at->recv_cq : &e->recv_cq;
	struct seg_rxq_slot *s = rxq_at(rxq, pos);

	s->rqe.qp = at->view.attach == e->view.attach ? e->index : SEG_NONE;
	s->rqe.qpn = e->qpn;
	s->rqe.cq = cq->index;
	s->rqe.sl = r->sl;
	s->rqe.phase = r->rendezvous;
	if ((e->stamps | at->stamps) & STAMP_RECV)
		s->stamp_ns = clock_ns();
	s->rqe.status = o->status;
	s->rqe.opcode = r->opcode;
	s->rqe.wc_flags = r->wc_flags;
	s->rqe.where = r->where;
	s->rqe.byte_len = o->byte_len;
	s->rqe.imm = r->imm;
	s->rqe.src_qp = r->src_qp;
	s->rqe.vendor_err = o->vendor_err;
	/* The commit point, as in complete_recv(). */
	if (!rxq_done(&rxq->ring, pos, x->attach))
		return;
	if (!push_rxq(x, &at->view, cq, rxq, pos, r->solicited || o->status != IBV_WC_SUCCESS))
		qp_set_error(e);
	rxq_announced(&rxq->ring, pos, x->attach);
}

/* One slot of a dead process.  True if it was one. */
static bool recover_slot(struct exec *x, const struct end *e, uint32_t i, uint32_t dead_id)
{
	struct seg_rxq_slot *s = rxq_at(&e->rxq, i);
	uint64_t word = atomic_load_explicit(&s->rqe.state, memory_order_seq_cst);
	struct cq_ref cq;

	if (rxq_attach_of(word) != dead_id)
		return false;
	if (rxq_state_of(word) == RXQ_TAKEN && e->type == SEG_TYPE_TM_LIST)
		return tm_untake(&e->rxq, word, dead_id);
	if (rxq_state_of(word) == RXQ_TAKEN)
		return rxq_untake(&e->rxq.ring, i, dead_id);
	if (rxq_state_of(word) != RXQ_DONE || cq_ref_init(&cq, &e->view, s->rqe.cq) || !cq.cq)
		return false;
	atomic_fetch_add_explicit(&cq.cq->surplus, s->rqe.phase ? 2 : 1, memory_order_relaxed);
	push_rxq(x, &e->view, &cq, &e->rxq, word, true);
	rxq_announced(&e->rxq.ring, word, dead_id);
	return true;
}

bool exec_rxq_recover(struct exec *x, const struct end *e, uint32_t dead_id)
{
	struct seg_rxq *q = &e->rxq.entry->rxq;
	uint32_t posted = 0;
	bool any = false;

	for (uint32_t i = 0; i <= e->rxq.ring.mask; i++) {
		if (recover_slot(x, e, i, dead_id))
			any = true;
		if (e->type == SEG_TYPE_TM_LIST)
			continue;
		rxq_refind(&e->rxq.ring, i);
		posted += rxq_state_of(atomic_load_explicit(
				  rxq_slot(&e->rxq.ring, i), memory_order_relaxed)) == RXQ_POSTED;
	}
	if (any && e->type != SEG_TYPE_TM_LIST) /* it may have died before it counted */
		atomic_store_explicit(&q->taken,
			atomic_load_explicit(&q->posted, memory_order_relaxed) - posted,
			memory_order_relaxed);
	return any;
}

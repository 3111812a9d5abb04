// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/complete.h"

#include "base/clock.h"
#include "hca/seg/arm.h"
#include "hca/seg/tm_list.h"
#include "hca/seg/token.h"

/*
 * The ring is full: the CQ is lost, as on an HCA; its owner hears of it once.  False: the program
 * wants it to go on without this completion.
 */
static bool overrun(struct exec *x, const struct view *v, const struct cq_ref *cq)
{
	uint32_t bit = 1u << IBV_EVENT_CQ_ERR;

	count_add(x, CTR_CQ_OVERRUN, 1);
	if (cq->cq->ignores_overrun)
		return false;
	atomic_store_explicit(&cq->cq->failed, 1, memory_order_release);
	if (atomic_fetch_or_explicit(&cq->cq->events, bit, memory_order_seq_cst) & bit)
		return true;
	atomic_fetch_or_explicit(&v->seg->cq_event_map[cq->index / 64], 1ull << cq->index % 64,
		memory_order_seq_cst);
	x->fire(v->attach, 0, x->arg);
	return true;
}

/* The event of a moderated CQ is due now, and the next one begins to wait anew. */
static void end_wait(struct seg_cq *cq)
{
	atomic_store_explicit(&cq->held, 0, memory_order_relaxed);
	atomic_store_explicit(&cq->due, 0, memory_order_relaxed);
}

bool cq_may_wait(struct exec *x, uint32_t attach, struct seg_cq *cq, uint32_t index, uint32_t more)
{
	uint32_t m = atomic_load_explicit(&cq->moderation, memory_order_relaxed);
	uint32_t count = m >> 16, period = m & 0xffff, n;
	uint64_t due;

	if (!m)
		return false;
	n = atomic_fetch_add_explicit(&cq->held, more, memory_order_relaxed) + more;
	due = atomic_load_explicit(&cq->due, memory_order_relaxed);
	if ((count && n >= count) || (due && clock_ns() >= due)) {
		end_wait(cq);
		return false;
	}
	if (n > more || !period)
		return true;
	due = clock_ns() + (uint64_t)period * NSEC_PER_USEC;
	atomic_store_explicit(&cq->due, due, memory_order_seq_cst);
	if (x->timer(attach, SEG_TIMER_CQ | index, due, x->arg))
		return true;
	end_wait(cq);
	return false;
}

bool cq_fire(struct exec *x, struct seg *seg, uint32_t attach, uint32_t index, bool solicited)
{
	struct seg_cq *cq = &seg->cq[index];
	uint32_t firing = arm_must_fire(&cq->arm, solicited);
	struct fired_ref order;

	if (!firing)
		return false;
	order = seg_fired(seg, cq->channel);
	fired_put(&order, index, &cq->fired);
	if (x->fire(attach, cq->channel, x->arg))
		atomic_fetch_add_explicit(&cq->told, 1, memory_order_release);
	arm_fired(&cq->arm, firing);
	return true;
}

/* It is armed for such a completion. */
static __attribute__((noinline)) void notify(
	struct exec *x, const struct view *v, const struct cq_ref *cq, bool solicited)
{
	const struct late_event e = {.seg = v->seg,
		.attach = v->attach,
		.index = cq->index,
		.arm = atomic_load_explicit(&cq->cq->arm, memory_order_relaxed),
		.solicited = solicited};

	if (cq_may_wait(x, v->attach, cq->cq, cq->index, 1))
		return;
	if (x->late && v->attach != x->attach)
		*x->late = e;
	else
		complete_late(x, &e);
}

void complete_late(struct exec *x, const struct late_event *late)
{
	uint32_t arm = atomic_load_explicit(&late->seg->cq[late->index].arm, memory_order_relaxed);

	if (!((arm ^ late->arm) & ~ARM_STATE_MASK) &&
		cq_fire(x, late->seg, late->attach, late->index, late->solicited))
		count_add(x, CTR_EVENTS, 1);
}

/* False: the CQ, of process v, is lost. */
static bool push_ticket(struct exec *x, const struct view *v, const struct cq_ref *cq,
	uint64_t ticket, bool solicited)
{
	uint64_t marked = ticket | (solicited ? TICKET_SOLICITED : 0);
	uint32_t surplus = atomic_load_explicit(&cq->cq->surplus, memory_order_relaxed);
	struct cq_ref now;

	if (surplus > CQ_SURPLUS_MAX)
		surplus = CQ_SURPLUS_MAX;
	if (atomic_load_explicit(&cq->cq->resizes, memory_order_acquire) != cq->resizes) {
		if (cq_ref_init(&now, v, cq->index))
			return false; /* its owner scribbled over its CQ */
		cq = &now;
	}
	if (!ticket_push(cq->ring, cq->slots, cq->log_size, cq->limit + surplus, marked))
		return !overrun(x, v, cq);
	if (arm_wants(&cq->cq->arm, solicited))
		notify(x, v, cq, solicited);
	return true;
}

static void push(
	struct exec *x, const struct end *e, const struct cq_ref *cq, bool recv, bool solicited)
{
	if (!push_ticket(x, &e->view, cq, ticket_make(e->index, recv, e->gen), solicited))
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

/* Of entry index of process v, a QP or an SRQ. */
static void raise_event(
	struct exec *x, const struct view *v, uint32_t index, enum ibv_event_type type)
{
	uint32_t bit = 1u << type;

	if (atomic_fetch_or_explicit(&v->seg->qp[index].events, bit, memory_order_seq_cst) & bit)
		return;
	atomic_fetch_or_explicit(
		&v->seg->qp_event_map[index / 64], 1ull << index % 64, memory_order_seq_cst);
	x->fire(v->attach, 0, x->arg);
}

void complete_note(struct exec *x, const struct end *e)
{
	push_ticket(x, &e->view, &e->recv_cq, ticket_make(e->index, false, e->gen), false);
}

void raise_qp_event(struct exec *x, const struct end *e, enum ibv_event_type type)
{
	raise_event(x, &e->view, e->index, type);
}

/* ---- receive queues with several producers ---- */

bool shared_take(struct exec *x, const struct end *e, uint32_t *pos)
{
	struct seg_rxq *q = &e->rx.entry->rx;
	uint32_t limit, left, taken;

	if (!rxq_take(&e->rx.ring, x->attach, pos))
		return false;
	if (e->type == IBV_QPT_UD && owns_shared(e))
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
		raise_event(x, &e->view, e->rx.index, IBV_EVENT_SRQ_LIMIT_REACHED);
	return true;
}

void shared_untake(struct exec *x, const struct end *e, uint32_t pos)
{
	if (rxq_untake(&e->rx.ring, pos & e->rx.ring.mask, x->attach))
		atomic_fetch_add_explicit(&e->rx.entry->rx.taken, UINT32_MAX, memory_order_relaxed);
}

/* A rendezvous completes twice: when it matched, and when its data is there. */
static bool push_shared(struct exec *x, const struct view *v, const struct cq_ref *cq,
	const struct rxq_ref *rx, uint32_t pos, bool solicited)
{
	uint64_t ticket = ticket_make_shared(rx->index, pos);

	if (rxq_at(rx, pos)->rqe.phase && !push_ticket(x, v, cq, ticket, solicited))
		return false;
	return push_ticket(x, v, cq, ticket, solicited);
}

void complete_shared(struct exec *x, const struct end *e, const struct end *at,
	const struct rxq_ref *rx, uint32_t pos, const struct outcome *o, const struct received *r)
{
	const struct cq_ref *cq = at->type == SEG_TYPE_XRC_SRQ ? &at->recv_cq : &e->recv_cq;
	struct seg_rxs *s = rxq_at(rx, pos);

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
	if (!rxq_done(&rx->ring, pos, x->attach))
		return;
	if (!push_shared(x, &at->view, cq, rx, pos, r->solicited || o->status != IBV_WC_SUCCESS))
		qp_set_error(e);
	rxq_announced(&rx->ring, pos, x->attach);
}

/* One slot of a dead process.  True if it was one. */
static bool recover_slot(struct exec *x, const struct end *e, uint32_t i, uint32_t dead_id)
{
	struct seg_rxs *s = rxq_at(&e->rx, i);
	uint64_t word = atomic_load_explicit(&s->rqe.state, memory_order_seq_cst);
	struct cq_ref cq;

	if (rxq_attach_of(word) != dead_id)
		return false;
	if (rxq_state_of(word) == RXQ_TAKEN && e->type == SEG_TYPE_TM_LIST)
		return tm_untake(&e->rx, word, dead_id);
	if (rxq_state_of(word) == RXQ_TAKEN)
		return rxq_untake(&e->rx.ring, i, dead_id);
	if (rxq_state_of(word) != RXQ_DONE || cq_ref_init(&cq, &e->view, s->rqe.cq) || !cq.cq)
		return false;
	atomic_fetch_add_explicit(&cq.cq->surplus, s->rqe.phase ? 2 : 1, memory_order_relaxed);
	push_shared(x, &e->view, &cq, &e->rx, word, true);
	rxq_announced(&e->rx.ring, word, dead_id);
	return true;
}

bool shared_recover(struct exec *x, const struct end *e, uint32_t dead_id)
{
	struct seg_rxq *q = &e->rx.entry->rx;
	uint32_t posted = 0;
	bool any = false;

	for (uint32_t i = 0; i <= e->rx.ring.mask; i++) {
		if (recover_slot(x, e, i, dead_id))
			any = true;
		if (e->type == SEG_TYPE_TM_LIST)
			continue;
		rxq_refind(&e->rx.ring, i);
		posted += rxq_state_of(atomic_load_explicit(
				  rxq_slot(&e->rx.ring, i), memory_order_relaxed)) == RXQ_POSTED;
	}
	if (any && e->type != SEG_TYPE_TM_LIST) /* it may have died before it counted */
		atomic_store_explicit(&q->taken,
			atomic_load_explicit(&q->posted, memory_order_relaxed) - posted,
			memory_order_relaxed);
	return any;
}

/* The receives of a UD QP. */
static void flush_own_shared(struct exec *x, const struct end *e)
{
	const struct outcome flushed = {.status = IBV_WC_WR_FLUSH_ERR};
	const struct received nothing = {.opcode = IBV_WC_RECV};
	uint32_t pos;

	for (uint32_t n = 0; n <= e->rx.ring.mask; n++) {
		if (end_state(e) != IBV_QPS_ERR || !shared_take(x, e, &pos))
			return;
		complete_shared(x, e, e, &e->rx, pos, &flushed, &nothing);
		count_add(x, CTR_FLUSHED, 1);
	}
}

/* A QP in ERR takes nothing more from its SRQ: once, its owner is told. */
static void last_wqe(struct exec *x, const struct end *e)
{
	if (end_state(e) == IBV_QPS_ERR &&
		!atomic_exchange_explicit(&e->qp->last_wqe, 1, memory_order_seq_cst))
		raise_qp_event(x, e, IBV_EVENT_QP_LAST_WQE_REACHED);
}

bool qp_set_error(const struct end *e)
{
	uint32_t s = atomic_load_explicit(&e->qp->state, memory_order_acquire);

	for (;;) {
		uint32_t st = s & QPS_STATE_MASK;

		if (s >> QPS_GEN_SHIFT != e->gen || !(s & QPS_LIVE) || st == IBV_QPS_RESET ||
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
	uint32_t base = e->gen << QPS_GEN_SHIFT | QPS_LIVE;
	uint32_t s = base | IBV_QPS_RTS;

	if (e->type != IBV_QPT_UC && e->type != IBV_QPT_UD) {
		qp_set_error(e);
		return;
	}
	atomic_compare_exchange_strong_explicit(
		&e->qp->state, &s, base | IBV_QPS_SQE, memory_order_seq_cst, memory_order_relaxed);
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

static void flush_send(struct exec *x, const struct end *e)
{
	const struct outcome flushed = {.status = IBV_WC_WR_FLUSH_ERR};

	uint32_t pos = atomic_load_explicit(&e->qp->sq_head, memory_order_acquire);

	/* Bounded by the ring, and one that was only not counted: a peer's tail may be anything. */
	for (uint32_t n = 0; end_sends(e) && n <= e->sq_mask + 1; n++, pos++) {
		if (pos == atomic_load_explicit(&e->qp->sq_tail, memory_order_acquire) ||
			!sends_flush(e))
			return;
		if (atomic_load_explicit(&end_wqe(e, pos)->done, memory_order_acquire) == pos + 1) {
			announce_again(x, e, pos, false);
			continue;
		}
		complete_send(x, e, pos, &flushed);
		count_add(x, CTR_FLUSHED, 1);
	}
}

static void flush_recv(struct exec *x, const struct end *e)
{
	const struct outcome flushed = {.status = IBV_WC_WR_FLUSH_ERR};
	const struct received nothing = {.opcode = IBV_WC_RECV};
	uint32_t pos = atomic_load_explicit(&e->qp->rq_head, memory_order_acquire);

	if (e->rx.ring.slots) {
		if (owns_shared(e))
			flush_own_shared(x, e);
		else
			last_wqe(x, e);
		return;
	}
	for (uint32_t n = 0; end_has_rq(e) && n <= e->rq_mask + 1; n++, pos++) {
		struct seg_rqe *w = end_rqe(e, pos);

		/* Before posted: its owner may have taken it, and posted the slot anew, since. */
		if (atomic_load_explicit(&w->done, memory_order_acquire) == pos + 1) {
			announce_again(x, e, pos, true);
			continue;
		}
		if (end_state(e) != IBV_QPS_ERR ||
			atomic_load_explicit(&w->posted, memory_order_acquire) != pos + 1)
			return;
		complete_recv(x, e, pos, &flushed, &nothing);
		count_add(x, CTR_FLUSHED, 1);
	}
}

void rq_token_drop(struct exec *x, const struct end *e)
{
	while (token_drop(&e->qp->rq_token, x->owner) == TOKEN_KICKED)
		if (end_state(e) == IBV_QPS_ERR)
			flush_recv(x, e);
}

void qp_flush_recv(struct exec *x, const struct end *e)
{
	if (!token_take(&e->qp->rq_token, x->owner))
		return;
	flush_recv(x, e);
	rq_token_drop(x, e);
}

void qp_flush(struct exec *x, const struct end *e, bool held)
{
	if (held) {
		flush_send(x, e);
	} else if (token_take(&e->qp->token, x->owner)) {
		do
			flush_send(x, e);
		while (token_drop(&e->qp->token, x->owner) == TOKEN_KICKED);
	}
	qp_flush_recv(x, e);
}

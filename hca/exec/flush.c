// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/flush.h"

#include "hca/exec/exec_rxq.h"
#include "hca/seg/token.h"

/* The receives of a UD QP. */
static void flush_own_rxq(struct exec *x, const struct end *e)
{
	const struct outcome flushed = {.status = IBV_WC_WR_FLUSH_ERR};
	const struct received nothing = {.opcode = IBV_WC_RECV};
	uint32_t pos;

	for (uint32_t n = 0; n <= e->rxq.ring.mask; n++) {
		if (end_state(e) != IBV_QPS_ERR || !exec_rxq_take(x, e, &pos))
			return;
		exec_rxq_complete(x, e, e, &e->rxq, pos, &flushed, &nothing);
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
			complete_send_again(x, e, pos);
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

	if (e->rxq.ring.slots) {
		if (end_owns_rxq(e))
			flush_own_rxq(x, e);
		else
			last_wqe(x, e);
		return;
	}
	for (uint32_t n = 0; end_has_rq(e) && n <= e->rq_mask + 1; n++, pos++) {
		struct seg_rqe *w = end_rqe(e, pos);

		/* Before posted: its owner may have taken it, and posted the slot anew, since. */
		if (atomic_load_explicit(&w->done, memory_order_acquire) == pos + 1) {
			complete_recv_again(x, e, pos);
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

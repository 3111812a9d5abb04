// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/receive.h"

#include "hca/exec/exec_rxq.h"
#include "hca/exec/flush.h"
#include "hca/exec/way.h"
#include "hca/seg/tm_list.h"
#include "hca/seg/token.h"

/* The receive that receive_find() found is consumed. */
void receive_finish(struct work *w, const struct outcome *o, const struct received *r)
{
	if (!w->shared) {
		complete_recv(w->x, w->resp, w->rq_pos, o, r);
		return;
	}
	exec_rxq_complete(w->x, w->resp, w->mem, w->rxq, w->rq_pos, o, r);
	rxq_fetch(w->rxq, w->rq_pos + 1);
}

void receive_leave(struct work *w)
{
	if (!w->shared)
		return;
	if (w->rxq == &w->mem->tags)
		tm_untake(w->rxq, w->rq_pos, w->x->attach);
	else
		exec_rxq_untake(w->x, w->mem, w->rq_pos);
}

enum step receive_find_ring(struct work *w, const struct end **at)
{
	const struct end *e = *at;
	uint32_t index = e->rxq.index, gen = e->rxq.gen;
	bool matches_tags = e->rxq.matches_tags;

	if (atomic_load_explicit(&e->rxq.entry->rxq.resizes, memory_order_seq_cst) & 1)
		return STEP_BUSY;
	if (e != w->mem_now)
		*w->mem_now = *e;
	if (rxq_ref_init(&w->mem_now->rxq, &w->mem_now->view, index) || w->mem_now->rxq.gen != gen)
		return STEP_NO_PEER;
	w->mem_now->rxq.matches_tags = matches_tags; /* its list was found with the end */
	*at = w->mem_now;
	return STEP_DONE;
}

/* From a shared queue.  The QP's rq_token excludes the end of its receiving (last_wqe()). */
static enum step find_in_rxq(struct work *w)
{
	enum step s;

	if (!rxq_in_place(&w->mem->rxq)) {
		s = receive_find_ring(w, &w->mem);
		if (s != STEP_DONE)
			return s;
	}
	if (!exec_rxq_take(w->x, w->mem, &w->rq_pos))
		return STEP_RNR;
	w->shared = true;
	w->rxq = &w->mem->rxq;
	w->rqe = &rxq_at(w->rxq, w->rq_pos)->rqe;
	if (end_receives(w->resp))
		return STEP_DONE;
	receive_leave(w);
	return STEP_NO_PEER;
}

enum step receive_hold_queue(struct work *w)
{
	if (w->rq_held)
		return STEP_DONE;
	if (!token_take(&w->resp->qp->rq_token, w->x->owner))
		return STEP_NO_PEER; /* a flush is going on there */
	w->rq_held = true;
	return STEP_DONE;
}

enum step receive_find(struct work *w)
{
	uint32_t pos;

	if (!w->resp->rq && !w->mem->rxq.ring.slots)
		return STEP_RNR;
	if (!w->rq_held && receive_hold_queue(w) != STEP_DONE)
		return STEP_NO_PEER;
	w->shared = false;
	if (w->mem->rxq.ring.slots)
		return find_in_rxq(w);
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

enum ibv_wc_status receive_fits(
	const struct view *v, uint32_t pd, const struct seg_rqe *r, unsigned max, uint64_t want)
{
	struct seg_sge sge[SGL_MAX];
	unsigned n = receive_sges(r, max, sge);
	struct held held;
	struct sgl l;

	if (want > sge_total(sge, n))
		return IBV_WC_LOC_LEN_ERR;
	held_reset(&held);
	sgl_reset(&l);
	return resolve_sges(v, pd, sge, n, want, IBV_ACCESS_LOCAL_WRITE, &l, &held)
		       ? IBV_WC_SUCCESS
		       : IBV_WC_LOC_PROT_ERR;
}

uint64_t receive_room(const struct work *w, struct seg_sge *room)
{
	unsigned max = w->shared ? w->rxq->sge_max : w->resp->rq_sge_max;

	return sge_total(room, receive_sges(w->rqe, max, room));
}

enum ibv_wc_status receive_range(struct work *w, struct payload *dst, struct held *held)
{
	struct seg_sge sge[SGL_MAX];
	unsigned max = w->shared ? w->rxq->sge_max : w->resp->rq_sge_max;
	uint32_t pd = w->shared ? w->rxq->pd : w->resp->pd;
	unsigned n = receive_sges(w->rqe, max, sge);

	if (w->length > sge_total(sge, n))
		return IBV_WC_LOC_LEN_ERR;
	payload_begin(dst, held);
	return resolve_sges(
		       &w->mem->view, pd, sge, n, w->length, IBV_ACCESS_LOCAL_WRITE, &dst->l, held)
		       ? IBV_WC_SUCCESS
		       : IBV_WC_LOC_PROT_ERR;
}

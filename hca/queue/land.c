// SPDX-License-Identifier: BSD-3-Clause
#include "hca/queue/land.h"

#include <string.h>

#include "hca/exec/resolve.h"
#include "hca/obj/mr.h"
#include "hca/obj/pd.h"
#include "hca/obj/qp.h"
#include "hca/proc/tables.h"
#include "hca/queue/cq.h"
#include "hca/queue/own_rxq.h"
#include "hca/queue/tm.h"
#include "hca/run/own_bytes.h"

/*
 * The region of the first len bytes of an SGE; NULL: it has no such memory.  Checked when the
 * message came; again, for a peer can scribble over our segment.
 */
static struct hca_mr *sge_region(const struct seg_sge *s, uint64_t len)
{
	struct hca_mr *mr = table_mr(key_index(s->lkey));
	uint64_t off;

	if (!mr || mr->key != s->lkey)
		return NULL;
	off = s->addr - mr->iova;
	if (off <= mr->length && len <= mr->length - off)
		return mr;
	return mr->kind->swallows ? mr : NULL;
}

/* Puts len bytes where an SGE, whose region is mr, says.  False: that memory refused them. */
static bool put_bytes(struct hca_mr *mr, const struct seg_sge *s, const uint8_t *from, uint64_t len)
{
	uint64_t off = s->addr - mr->iova;

	if (__builtin_expect(mr->kind->io != NULL, 0))
		return !len || !own_write(mr, mr->addr + off, from, len);
	memcpy(mr->kind->swallows ? mr->of : (void *)(uintptr_t)(mr->addr + off), from, len);
	return true;
}

/*
 * Does all of that, for the first len bytes of a receive; from NULL: only looks whether its regions
 * are there.  An SGE of no length needs no key.
 */
static bool put_list(const struct seg_rqe *r, unsigned sge_max, const uint8_t *from, uint64_t len)
{
	unsigned n = r->num_sge < sge_max ? r->num_sge : sge_max;

	for (unsigned i = 0; i < n && i < HCA_MAX_SGE && len; i++) {
		const struct seg_sge s = i < RQ_SGE_NEAR ? r->near[i] : r->far[i - RQ_SGE_NEAR];
		uint64_t step = s.length < len ? s.length : len;
		struct hca_mr *mr = step ? sge_region(&s, step) : NULL;

		if (step && (!mr || (from && !put_bytes(mr, &s, from, step))))
			return false;
		if (from)
			from += step;
		len -= step;
	}
	return true;
}

bool recv_scatter(const struct seg_rqe *r, unsigned sge_max, const uint8_t *from, uint32_t len)
{
	const struct seg_sge s = r->near[0];

	if (r->num_sge == 1 && sge_max && len <= s.length) {
		struct hca_mr *mr = sge_region(&s, len);

		return mr ? put_bytes(mr, &s, from, len) : !len;
	}
	return put_list(r, sge_max, NULL, len) && put_list(r, sge_max, from, len);
}

static void land_one(struct hca_qp *qp, uint32_t pos)
{
	struct seg_rqe *r = end_rqe(&qp->me, pos);
	uint32_t len = r->byte_len, max = qp->me.rq_sge_max;

	if (r->where == RQ_DIRECT)
		return;
	if (r->where == RQ_IN_SLOT) {
		recv_scatter(r, max, r->payload, len < RQ_INLINE_MAX ? len : RQ_INLINE_MAX);
		return;
	}
	if (len <= SEG_RING_BYTES - r->ring_pos % SEG_RING_BYTES)
		recv_scatter(r, max, qp->me.ring + r->ring_pos % SEG_RING_BYTES, len);
	atomic_store_explicit(&qp->me.qp->ring_head,
		r->ring_pos + ((len + CACHE_LINE - 1) & ~(CACHE_LINE - 1u)), memory_order_release);
}

void qp_land(struct hca_qp *qp, uint32_t upto)
{
	for (; qp->rq_landed != upto; qp->rq_landed++)
		land_one(qp, qp->rq_landed);
}

/* ---- all that came, before memory goes ---- */

static void land_if_of(struct hca_qp *qp, uint64_t ticket)
{
	if (ticket_is_rxq(ticket) && ticket_entry(ticket) == qp->me.index)
		own_rxq_land(&qp->rxq, ticket);
}

/*
 * Receives of UD get their bytes in the order in which they will complete, that of the tickets.  A
 * slot that has none yet has not arrived: whoever fills it has told nobody.
 */
static void land_datagrams(struct hca_qp *qp)
{
	struct hca_cq *cq = qp->recv_cq;
	uint64_t pos, t;

	lock_take(&cq->lock);
	for (uint32_t i = cq->early.at; i < cq->early.n; i++)
		land_if_of(qp, cq->early.t[i]);
	pos = atomic_load_explicit(&cq->head, memory_order_relaxed);
	for (; (t = cq_peek(cq, pos)); pos++)
		land_if_of(qp, t);
	lock_drop(&cq->lock);
}

/* The word of the thread of ours that posted it is read, too: what it wrote is read next. */
static bool has_arrived(const struct hca_qp *qp, uint32_t pos)
{
	struct seg_rqe *r = end_rqe(&qp->me, pos);

	return atomic_load_explicit(&r->done, memory_order_acquire) == pos + 1 &&
	       atomic_load_explicit(&r->posted, memory_order_acquire) == pos + 1;
}

static void land_arrived(struct hca_qp *qp)
{
	uint32_t pos;

	if (qp->rxq.ref.ring.slots)
		land_datagrams(qp);
	if (!qp->me.rq)
		return;
	lock_take(&qp->recv_cq->lock);
	pos = qp->rq_landed;
	while (pos - qp->rq_landed <= qp->me.rq_mask && has_arrived(qp, pos))
		pos++;
	qp_land(qp, pos);
	lock_drop(&qp->recv_cq->lock);
}

void pd_land_all(struct hca_pd *pd)
{
	lock_take(&pd->lock);
	for (struct hca_qp *qp = pd->qps; qp; qp = qp->next)
		land_arrived(qp);
	for (struct hca_srq *srq = pd->srqs; srq; srq = srq->next) {
		own_rxq_land_all(&srq->rxq);
		if (srq->tm)
			own_rxq_land_all(tm_rxq(srq->tm));
	}
	lock_drop(&pd->lock);
}

static void pass(struct lock *l)
{
	lock_take(l);
	lock_drop(l);
}

void pd_pass_landers(struct hca_pd *pd)
{
	lock_take(&pd->lock);
	for (struct hca_qp *qp = pd->qps; qp; qp = qp->next) {
		if (qp->rxq.ref.ring.slots)
			pass(&qp->rxq.land);
		if (qp->me.rq)
			pass(&qp->recv_cq->lock);
	}
	for (struct hca_srq *srq = pd->srqs; srq; srq = srq->next) {
		pass(&srq->rxq.land);
		if (srq->tm)
			pass(&tm_rxq(srq->tm)->land);
	}
	lock_drop(&pd->lock);
}

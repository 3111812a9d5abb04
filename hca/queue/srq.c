// SPDX-License-Identifier: BSD-3-Clause
#include "hca/queue/srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/exec/complete.h"
#include "hca/obj/pd.h"
#include "hca/obj/qp.h"
#include "hca/proc/heap.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/proc/tables.h"
#include "hca/queue/cq.h"
#include "hca/queue/event.h"
#include "hca/queue/own_rxq.h"
#include "hca/queue/srq_resize.h"
#include "hca/queue/tm.h"
#include "hca/run/far.h"

static int refuse(int err, const char *why)
{
	log_refusal("SRQ: %s", why);
	return err;
}

static int check_attr(const struct ibv_srq_attr *a)
{
	if (!a->max_wr || a->max_wr > HCA_MAX_WR || a->max_sge > HCA_MAX_SGE)
		return refuse(-EINVAL, "a capacity is 0 or above the device's limits");
	return 0;
}

struct srq_made {
	const struct ibv_srq_attr *attr;
	struct seg_rxq_place place;
};

static void describe(
	const struct hca_srq *srq, struct seg_qp *s, uint32_t srqn, const struct srq_made *made)
{
	uint32_t gen = atomic_load_explicit(&s->state, memory_order_relaxed) >> QPS_GEN_SHIFT;

	memset((char *)s + sizeof s->state, 0, sizeof *s - sizeof s->state);
	s->qpn = srqn;
	s->pd = srq->pd->handle;
	s->type = srq->tm ? SEG_TYPE_TM_SRQ : srq->xrcd ? SEG_TYPE_XRC_SRQ : SEG_TYPE_SRQ;
	s->srq = srq->tm ? tm_index(srq->tm) : 0;
	s->xrcd = srq->xrcd ? srq->xrcd->id : 0;
	s->send_cq = SEG_NONE;
	s->recv_cq = srq->cq ? srq->cq->index : SEG_NONE;
	s->rq_log = 0xff;
	s->stamps = srq->cq && srq->cq->stamps ? STAMP_RECV : 0;
	s->rxq.place[0] = made->place;
	s->rxq.stride = rxq_stride_for(made->attr->max_sge);
	atomic_store_explicit(&s->state, (gen + 1) << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RESET,
		memory_order_release);
}

static int build(struct hca_srq *srq, const struct ibv_srq_attr *attr)
{
	const struct view v = proc_view();
	struct srq_made made = {.attr = attr};
	uint32_t srqn;
	int index, rc = own_rxq_alloc(&made.place, attr->max_wr, attr->max_sge);

	if (rc)
		return rc;
	index = table_add_srq(srq, &srqn);
	if (index < 0) {
		own_rxq_give_back(&made.place, attr->max_sge);
		return index;
	}
	describe(srq, &v.seg->qp[index], srqn, &made);
	rc = end_init(&srq->me, &v, index);
	if (rc) {
		atomic_store_explicit(&v.seg->qp[index].state, 0, memory_order_release);
		table_del_qp(index);
		own_rxq_give_back(&made.place, attr->max_sge);
		return rc;
	}
	own_rxq_init(&srq->rxq, &srq->me.rxq, attr->max_wr, attr->max_sge);
	return 0;
}

static void enlist(struct hca_srq *srq)
{
	struct hca_pd *pd = srq->pd;

	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	if (srq->cq)
		atomic_fetch_add_explicit(&srq->cq->users, 1, memory_order_relaxed);
	if (srq->xrcd)
		atomic_fetch_add_explicit(&srq->xrcd->users, 1, memory_order_relaxed);
	lock_take(&pd->lock);
	srq->next = pd->srqs;
	srq->link = &pd->srqs;
	if (srq->next)
		srq->next->link = &srq->next;
	pd->srqs = srq;
	lock_drop(&pd->lock);
}

static void delist(struct hca_srq *srq)
{
	struct hca_pd *pd = srq->pd;

	lock_take(&pd->lock);
	*srq->link = srq->next;
	if (srq->next)
		srq->next->link = srq->link;
	lock_drop(&pd->lock);
	atomic_fetch_sub_explicit(&pd->users, 1, memory_order_release);
	if (srq->cq)
		atomic_fetch_sub_explicit(&srq->cq->users, 1, memory_order_release);
	if (srq->xrcd)
		atomic_fetch_sub_explicit(&srq->xrcd->users, 1, memory_order_release);
}

static int check_tm(const struct ibv_tm_cap *tm)
{
	if (!tm->max_num_tags || tm->max_num_tags > HCA_MAX_TAGS || !tm->max_ops ||
		tm->max_ops > HCA_MAX_TAG_OPS)
		return refuse(
			-EINVAL, "room for tags or their operations is 0 or above the limits");
	return 0;
}

int hca_srq_create(struct hca_pd *pd, struct ibv_srq_attr *attr, const struct hca_srq_parts *parts,
	void *cookie, struct hca_srq **out)
{
	struct hca_xrcd *xrcd = parts->xrcd;
	struct hca_cq *cq = parts->cq;
	int rc = check_attr(attr);
	struct hca_srq *srq;

	if (!rc && (xrcd || parts->tm) != !!cq)
		rc = refuse(-EINVAL, "an XRC SRQ needs a domain and a CQ, others have neither");
	if (!rc && parts->tm)
		rc = check_tm(parts->tm);
	if (!rc)
		rc = proc_attach(NULL);
	if (rc)
		return rc;
	if (pd->epoch != proc_epoch() || (xrcd && xrcd->epoch != proc_epoch()) ||
		(cq && cq->epoch != proc_epoch()))
		return -EINVAL; /* objects of the process we were forked from */
	srq = calloc(1, sizeof *srq);
	if (!srq)
		return -ENOMEM;
	srq->epoch = proc_epoch();
	srq->pd = pd;
	srq->xrcd = xrcd;
	srq->cq = cq;
	srq->cookie = cookie;
	attr->max_sge = attr->max_sge ? attr->max_sge : 1;
	rc = parts->tm ? tm_create(srq, parts->tm, &srq->tm) : 0;
	if (!rc)
		rc = build(srq, attr);
	if (rc) {
		if (srq->tm) {
			tm_close(srq->tm);
			tm_free(srq->tm, NULL);
		}
		free(srq);
		return rc;
	}
	enlist(srq);
	*out = srq;
	return 0;
}

int hca_srq_destroy(struct hca_srq *srq)
{
	if (srq->epoch == proc_epoch()) {
		if (atomic_load_explicit(&srq->users, memory_order_acquire))
			return log_busy("ibv_destroy_srq", "QPs use the SRQ");
		atomic_store_explicit(&srq->me.qp->state, (end_gen(&srq->me) + 1) << QPS_GEN_SHIFT,
			memory_order_seq_cst);
		if (srq->tm)
			tm_close(srq->tm);
		quiesce_runs();
		cq_purge(srq->cq, srq->me.index);
		if (srq->tm)
			tm_free(srq->tm, srq->cq);
		delist(srq);
		qp_forget_events(srq->me.index);
		table_del_qp(srq->me.index);
		own_rxq_free(&srq->rxq);
	}
	free(srq);
	return 0;
}

uint32_t hca_srq_num(const struct hca_srq *srq)
{
	return srq->me.qpn;
}

/* Fewer receives than the new limit: the event comes at once. */
static void check_limit(struct hca_srq *srq)
{
	struct seg_rxq *q = &srq->me.rxq.entry->rxq;
	uint32_t limit = atomic_load_explicit(&q->limit, memory_order_seq_cst);
	uint32_t left = atomic_load_explicit(&q->posted, memory_order_relaxed) -
			atomic_load_explicit(&q->taken, memory_order_seq_cst);
	struct exec *x = exec_get();

	if (x && limit && left < limit &&
		atomic_compare_exchange_strong_explicit(
			&q->limit, &limit, 0, memory_order_seq_cst, memory_order_relaxed))
		raise_qp_event(x, &srq->me, IBV_EVENT_SRQ_LIMIT_REACHED);
	exec_put(x);
}

/* Everything is checked before anything is changed; with the lock of posting held. */
static int modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	_Atomic uint32_t *now = &srq->me.rxq.entry->rxq.limit;
	uint32_t limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit
					      : atomic_load_explicit(now, memory_order_relaxed);
	uint32_t depth = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rxq.depth;
	int rc;

	if (!depth || depth > HCA_MAX_WR)
		return refuse(-EINVAL, "max_wr is 0 or above the device's limit");
	if (limit > depth)
		return refuse(-EINVAL, "srq_limit is above max_wr");
	if (mask & IBV_SRQ_MAX_WR) {
		rc = own_rxq_resize(&srq->rxq, depth);
		if (rc)
			return rc;
	}
	if (mask & IBV_SRQ_LIMIT)
		atomic_store_explicit(now, limit, memory_order_seq_cst);
	return 0;
}

int hca_srq_modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	int rc;

	if (srq->epoch != proc_epoch() || mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return -EINVAL;
	lock_take(&srq->rxq.lock);
	rc = modify(srq, attr, mask);
	lock_drop(&srq->rxq.lock);
	if (!rc && mask & IBV_SRQ_LIMIT)
		check_limit(srq);
	return rc;
}

void hca_srq_query(struct hca_srq *srq, struct ibv_srq_attr *attr)
{
	lock_take(&srq->rxq.lock);
	attr->max_wr = srq->rxq.depth;
	lock_drop(&srq->rxq.lock);
	attr->max_sge = srq->rxq.max_sge;
	attr->srq_limit = atomic_load_explicit(&srq->me.rxq.entry->rxq.limit, memory_order_relaxed);
}

/* Requesters wait for receives: serves those whose QPs are ours. */
static void serve_parked(struct lock *lock, struct hca_qp **list)
{
	lock_take(lock);
	for (struct hca_qp *qp = *list; qp; qp = qp->shared_next)
		if (atomic_load_explicit(&qp->me.qp->park, memory_order_seq_cst) &&
			atomic_exchange_explicit(&qp->me.qp->park, 0, memory_order_seq_cst))
			far_run_in(qp);
	lock_drop(lock);
}

void srq_serve(struct hca_srq *srq)
{
	_Atomic uint32_t *park = &srq->me.rxq.entry->rxq.park;

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(park, memory_order_seq_cst) &&
		atomic_exchange_explicit(park, 0, memory_order_seq_cst))
		serve_parked(&srq->lock, &srq->qps);
}

int hca_post_srq_recv(struct hca_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	bool parked = false;
	int rc;

	if (srq->epoch != proc_epoch()) {
		*bad = wr;
		return -EINVAL;
	}
	rc = own_rxq_post(&srq->rxq, wr, bad, &parked);
	if (parked && srq->xrcd)
		serve_parked(&srq->xrcd->lock, &srq->xrcd->qps);
	else if (parked)
		serve_parked(&srq->lock, &srq->qps);
	return rc;
}

// SPDX-License-Identifier: BSD-3-Clause
/* Queue pairs: creation, destruction. */
#include "hca/queue/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/exec/exec.h"
#include "hca/obj/pd.h"
#include "hca/proc/heap.h"
#include "hca/proc/member.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/proc/tables.h"
#include "hca/queue/cq.h"
#include "hca/queue/event.h"
#include "hca/queue/explain.h"
#include "hca/queue/own_rxq.h"
#include "hca/queue/rxq_order.h"
#include "hca/queue/xrcd.h"
#include "hca/run/far_datagram.h"
#include "hca/run/handed.h"
#include "hca/run/near.h"
#include "hca/run/progress.h"
#include "hca/run/route.h"
#include "hca/run/worker.h"
#include "hca/seg/token.h"

/* ---- creation ---- */

static int refuse(int err, const char *why)
{
	log_refusal("create_qp refused: %s", why);
	return err;
}

/* What a QP type is made of. */
static const struct kind {
	bool known, pd, send_cq, recv_cq, srq, xrcd, routes;
} kinds[] = {
	[IBV_QPT_RC] = {true, true, true, true, true, false, false},
	[IBV_QPT_UC] = {true, true, true, true, true, false, false},
	[IBV_QPT_UD] = {true, true, true, true, true, false, true},
	[IBV_QPT_XRC_SEND] = {true, true, true, false, false, false, true},
	[IBV_QPT_XRC_RECV] = {true, false, false, false, false, true, false},
};

static const struct kind *kind_of(enum ibv_qp_type type)
{
	return (unsigned)type < sizeof kinds / sizeof *kinds && kinds[type].known ? &kinds[type]
										  : NULL;
}

/* receives: has it any of its own?  What is said of them means nothing else. */
static int check_caps(const struct ibv_qp_cap *c, bool receives)
{
	if (c->max_send_wr > HCA_MAX_WR || c->max_send_sge > HCA_MAX_SGE ||
		c->max_inline_data > HCA_MAX_INLINE ||
		(receives && (c->max_recv_wr > HCA_MAX_WR || c->max_recv_sge > HCA_MAX_SGE)))
		return refuse(-EINVAL, "a capacity is above the device's limits (ibv_devinfo -v)");
	return 0;
}

static int check_init(
	const struct hca_pd *pd, const struct ibv_qp_init_attr *init, const struct hca_qp_parts *p)
{
	const struct kind *k = kind_of(init->qp_type);

	if (init->qp_type == IBV_QPT_RAW_PACKET) {
		log_line(LOG_LVL_WARN, "create_qp refused: there are no raw packet queue pairs");
		return -EOPNOTSUPP;
	}
	if (!k)
		return refuse(-EINVAL, "no such queue pair type");
	if ((k->pd && !pd) || (k->send_cq && !p->send_cq) || (k->recv_cq && !p->recv_cq) ||
		(k->xrcd && !p->xrcd))
		return refuse(-EINVAL, "a PD, completion queue or XRC domain is missing");
	if (p->srq && (!k->srq || p->srq->xrcd || (p->srq->tm && init->qp_type != IBV_QPT_RC)))
		return refuse(-EINVAL, "this type takes no shared receive queue, or not that one");
	if (p->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB ||
		(p->create_flags && init->qp_type != IBV_QPT_UD)) {
		log_line(LOG_LVL_WARN, "create_qp refused: unknown create flags");
		return -EOPNOTSUPP;
	}
	return check_caps(&init->cap, k->recv_cq && !p->srq);
}

/* Where the rings of a new QP lie. */
struct rings {
	uint64_t sq, rq, ring, park;
	struct seg_rxq_place rxq;
};

/* Datagrams of many senders go to a queue with several producers. */
static bool owns_rx(const struct hca_qp *qp)
{
	return qp->init.qp_type == IBV_QPT_UD && !qp->srq;
}

static void free_rings(const struct hca_qp *qp, const struct rings *r)
{
	heap_free(r->sq, qp->sq_bytes);
	heap_free(r->rq, qp->rq_bytes);
	heap_free(r->ring, SEG_RING_BYTES);
	heap_free(r->park, SEG_PARK_BYTES);
	if (r->rxq.slots_off)
		own_rxq_give_back(&r->rxq, qp->rq_max_sge);
}

static int alloc_rings(struct hca_qp *qp, struct rings *r)
{
	int rc = heap_alloc(qp->sq_bytes, &r->sq);

	if (!rc && qp->rq_bytes)
		rc = heap_alloc(qp->rq_bytes, &r->rq);
	if (!rc && qp->rq_bytes)
		rc = heap_alloc(SEG_RING_BYTES, &r->ring);
	if (!rc)
		rc = heap_alloc(SEG_PARK_BYTES, &r->park);
	if (!rc && owns_rx(qp))
		rc = own_rxq_alloc(&r->rxq, qp->rq_depth, qp->rq_max_sge);
	if (rc)
		free_rings(qp, r);
	return rc;
}

/* Does the CQ, if there is one, want to know when its requests completed? */
static bool stamps(const struct hca_cq *cq)
{
	return cq && cq->stamps;
}

/* Writes the entry of a new QP; its generation goes on from the one before. */
static void describe(struct hca_qp *qp, struct seg_qp *s, uint32_t qpn, const struct rings *r)
{
	const struct ibv_qp_init_attr *init = &qp->init;
	uint32_t gen = atomic_load_explicit(&s->state, memory_order_relaxed) >> QPS_GEN_SHIFT;

	memset((char *)s + sizeof s->state, 0, sizeof *s - sizeof s->state);
	s->qpn = qpn;
	s->pd = qp->pd ? qp->pd->handle : 0;
	s->type = init->qp_type;
	s->send_cq = qp->send_cq ? qp->send_cq->index : SEG_NONE;
	s->recv_cq = qp->recv_cq ? qp->recv_cq->index : SEG_NONE;
	s->srq = qp->srq ? qp->srq->me.index : 0;
	s->xrcd = qp->xrcd ? qp->xrcd->id : 0;
	s->no_self_mcast = qp->no_self_mcast;
	s->mtu = proc_at()->fabric->port[0].active_mtu;
	s->rxq.place[0] = r->rxq;
	s->rxq.stride = rxq_stride_for(qp->rq_max_sge);
	s->sq_off = r->sq;
	s->rq_off = r->rq;
	s->ring_off = r->ring;
	s->park_off = r->park;
	s->sq_stride = sq_stride_for(
		init->cap.max_send_sge, init->cap.max_inline_data, stamps(qp->send_cq));
	s->rq_stride = rq_stride_for(init->cap.max_recv_sge, stamps(qp->recv_cq));
	s->stamps = (stamps(qp->send_cq) ? STAMP_SEND : 0) | (stamps(qp->recv_cq) ? STAMP_RECV : 0);
	s->sq_log = slots_log_for(init->cap.max_send_wr);
	s->rq_log = qp->rq_bytes ? slots_log_for(init->cap.max_recv_wr) : 0xff;
	s->sq_sig_all = init->sq_sig_all;
	atomic_store_explicit(&s->state, (gen + 1) << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RESET,
		memory_order_release);
}

/* Receives of its own, from one peer. */
static bool has_plain_rq(const struct hca_qp *qp)
{
	return qp->recv_cq && !qp->srq && qp->init.qp_type != IBV_QPT_UD;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void size_queues(struct hca_qp *qp, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_cap *c = &init->cap;
	bool receives = qp->recv_cq && !qp->srq;

	if (!receives)
		c->max_recv_wr = c->max_recv_sge = 0;
	/* A queue nobody asked for still has one slot, so that no special case is needed. */
	c->max_send_wr = c->max_send_wr ? c->max_send_wr : 1;
	c->max_recv_wr = c->max_recv_wr ? c->max_recv_wr : 1;
	c->max_send_sge = c->max_send_sge ? c->max_send_sge : 1;
	c->max_recv_sge = c->max_recv_sge ? c->max_recv_sge : 1;
	/* Where the scatter list lies there is room for data; rdma_rxe gives as much, too. */
	c->max_inline_data = larger(c->max_inline_data, c->max_send_sge * sizeof(struct seg_sge));
	qp->sq_bytes =
		(uint64_t)sq_stride_for(c->max_send_sge, c->max_inline_data, stamps(qp->send_cq))
		<< slots_log_for(c->max_send_wr);
	if (has_plain_rq(qp))
		qp->rq_bytes = (uint64_t)rq_stride_for(c->max_recv_sge, stamps(qp->recv_cq))
			       << slots_log_for(c->max_recv_wr);
	qp->sq_depth = c->max_send_wr;
	qp->rq_depth = c->max_recv_wr;
	qp->max_sge = c->max_send_sge;
	qp->rq_max_sge = c->max_recv_sge;
	qp->max_inline = c->max_inline_data;
	qp->sig_all = init->sq_sig_all;
	if (!receives)
		c->max_recv_wr = c->max_recv_sge = 0;
}

static int build(struct hca_qp *qp)
{
	const struct view v = proc_view();
	struct rings r = {0};
	struct seg_qp *s;
	uint32_t qpn;
	int rc = alloc_rings(qp, &r);
	int index;

	if (rc)
		return rc;
	index = table_add_qp(qp, &qpn);
	if (index < 0) {
		free_rings(qp, &r);
		return index;
	}
	s = &v.seg->qp[index];
	describe(qp, s, qpn, &r);
	rc = end_init(&qp->me, &v, index);
	if (!rc && owns_rx(qp)) {
		own_rxq_init(&qp->rxq, &qp->me.rxq, qp->rq_depth, qp->rq_max_sge);
		rc = rxq_order_init(&qp->rxq.order, qp->rxq.ref.ring.mask + 1, qp->rq_max_sge);
	}
	if (rc) {
		atomic_store_explicit(&s->state, 0, memory_order_release);
		table_del_qp(index);
		free_rings(qp, &r);
	}
	return rc;
}

/* The list of QPs that receive from its SRQ or in its XRC domain. */
static void link_shared(struct hca_qp *qp, struct lock *lock, struct hca_qp **list)
{
	lock_take(lock);
	qp->shared_next = *list;
	qp->shared_link = list;
	if (*list)
		(*list)->shared_link = &qp->shared_next;
	*list = qp;
	lock_drop(lock);
}

static void unlink_shared(struct hca_qp *qp, struct lock *lock)
{
	lock_take(lock);
	*qp->shared_link = qp->shared_next;
	if (qp->shared_next)
		qp->shared_next->shared_link = qp->shared_link;
	lock_drop(lock);
}

/* One user more or less of each part. */
static void count_users(struct hca_qp *qp, uint32_t change)
{
	_Atomic uint32_t *users[] = {
		qp->pd ? &qp->pd->users : NULL,
		qp->send_cq ? &qp->send_cq->users : NULL,
		qp->recv_cq ? &qp->recv_cq->users : NULL,
		qp->srq ? &qp->srq->users : NULL,
		qp->xrcd ? &qp->xrcd->users : NULL,
		&proc_seg()->hdr.n_qp,
	};

	for (unsigned i = 0; i < sizeof users / sizeof *users; i++)
		if (users[i])
			atomic_fetch_add_explicit(users[i], change, memory_order_acq_rel);
}

static void enlist(struct hca_qp *qp)
{
	struct hca_pd *pd = qp->pd;

	count_users(qp, 1);
	if (qp->srq)
		link_shared(qp, &qp->srq->lock, &qp->srq->qps);
	if (qp->xrcd)
		link_shared(qp, &qp->xrcd->lock, &qp->xrcd->qps);
	if (!pd)
		return;
	lock_take(&pd->lock);
	qp->next = pd->qps;
	qp->link = &pd->qps;
	if (qp->next)
		qp->next->link = &qp->next;
	pd->qps = qp;
	lock_drop(&pd->lock);
}

/* Objects of the process we were forked from are of no use here. */
static bool parts_fit(const struct hca_pd *pd, const struct hca_qp_parts *p)
{
	uint32_t epoch = proc_epoch();

	return (!pd || pd->epoch == epoch) && (!p->send_cq || p->send_cq->epoch == epoch) &&
	       (!p->recv_cq || p->recv_cq->epoch == epoch) && (!p->srq || p->srq->epoch == epoch) &&
	       (!p->xrcd || p->xrcd->epoch == epoch);
}

/* Only what its type takes. */
static void take_parts(
	struct hca_qp *qp, struct hca_pd *pd, const struct hca_qp_parts *p, const struct kind *k)
{
	qp->pd = k->pd ? pd : NULL;
	qp->send_cq = k->send_cq ? p->send_cq : NULL;
	qp->recv_cq = k->recv_cq ? p->recv_cq : NULL;
	qp->srq = p->srq;
	qp->xrcd = k->xrcd ? p->xrcd : NULL;
	qp->no_self_mcast = p->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
}

static int make_routes(struct hca_qp *qp)
{
	if (!kind_of(qp->init.qp_type)->routes)
		return 0;
	qp->routes = routes_new();
	if (qp->init.qp_type == IBV_QPT_UD)
		qp->path = calloc(1, sizeof *qp->path);
	return qp->routes && (qp->path || qp->init.qp_type != IBV_QPT_UD) ? 0 : -ENOMEM;
}

static void free_with_routes(struct hca_qp *qp, bool live)
{
	routes_free(qp->routes, live);
	free(qp->path);
	free(qp);
}

int hca_qp_create(struct hca_pd *pd, struct ibv_qp_init_attr *init,
	const struct hca_qp_parts *parts, void *cookie, struct hca_qp **out)
{
	int rc = check_init(pd, init, parts);
	struct hca_qp *qp;

	if (rc)
		return rc;
	rc = proc_attach(NULL);
	if (rc)
		return rc;
	if (!parts_fit(pd, parts))
		return -EINVAL;
	qp = calloc(1, sizeof *qp);
	if (!qp)
		return -ENOMEM;
	qp->epoch = proc_epoch();
	qp->cookie = cookie;
	qp->init = *init;
	atomic_store_explicit(&qp->far, &near_ops, memory_order_relaxed);
	take_parts(qp, pd, parts, kind_of(init->qp_type));
	size_queues(qp, init);
	qp->init = *init;
	rc = make_routes(qp);
	if (!rc)
		rc = build(qp);
	if (rc) {
		free_with_routes(qp, true);
		return rc;
	}
	enlist(qp);
	*out = qp;
	return 0;
}

/* ---- destruction ---- */

static void delist(struct hca_qp *qp)
{
	struct hca_pd *pd = qp->pd;

	if (qp->srq)
		unlink_shared(qp, &qp->srq->lock);
	if (qp->xrcd)
		unlink_shared(qp, &qp->xrcd->lock);
	if (pd) {
		lock_take(&pd->lock);
		*qp->link = qp->next;
		if (qp->next)
			qp->next->link = qp->link;
		lock_drop(&pd->lock);
	}
	count_users(qp, UINT32_MAX);
}

void qp_stop(struct hca_qp *qp, uint32_t new_state)
{
	struct seg_qp *s = qp->me.qp;

	atomic_store_explicit(&s->state, new_state, memory_order_seq_cst);
	far_of(qp)->stop(qp);
	if (!qp_connects(qp))
		far_datagram_listen(qp, false);
	worker_forget(qp);
	handed_forget(qp);
	progress_forget(qp);
	quiesce_runs();
	/* Threads of ours may have queued it before they saw the state. */
	worker_forget(qp);
	progress_forget(qp);
	cq_purge(qp->send_cq, qp->me.index);
	if (qp->recv_cq != qp->send_cq)
		cq_purge(qp->recv_cq, qp->me.index);
	if (qp->srq && qp->srq->tm)
		cq_purge(qp->srq->cq, qp->me.index);
}

/* From our own pointers: what stands in the segment, a peer may have scribbled over. */
static uint64_t offset_of(const uint8_t *p)
{
	return p ? p - (const uint8_t *)proc_seg() : 0;
}

int hca_qp_destroy(struct hca_qp *qp)
{
	if (qp->epoch == proc_epoch() && qp->xrcd && !xrcd_last_close(qp))
		return 0;
	if (qp->epoch == proc_epoch() && !qp_connects(qp) && member_count(MEMBER_MCAST, qp->me.qpn))
		return log_busy("ibv_destroy_qp",
			"the QP is in multicast groups; ibv_detach_mcast comes first");
	if (qp->epoch == proc_epoch()) {
		struct rings r = {.sq = offset_of(qp->me.sq),
			.rq = offset_of(qp->me.rq),
			.ring = qp->me.rq ? offset_of(qp->me.ring) : 0,
			.park = offset_of(qp->me.park_buf)};

		explain_end(qp);
		lock_take(&qp->modify_lock);
		qp_stop(qp, (end_gen(&qp->me) + 1) << QPS_GEN_SHIFT);
		lock_drop(&qp->modify_lock);
		delist(qp);
		qp_forget_events(qp->me.index);
		table_del_qp(qp->me.index);
		free_rings(qp, &r);
		own_rxq_free(&qp->rxq);
	} else {
		rxq_order_free(&qp->rxq.order);
	}
	far_of(qp)->forget(qp, qp->epoch == proc_epoch());
	free_with_routes(qp, qp->epoch == proc_epoch());
	return 0;
}

uint32_t hca_qp_num(const struct hca_qp *qp)
{
	return qp->me.qpn;
}

/* ---- the other end ---- */

int hca_qp_rkey_access(const struct hca_qp *qp, uint32_t rkey, unsigned *access)
{
	const struct far_ops *far = far_of(qp);
	uint32_t state = end_state(&qp->me);

	if (qp->epoch != proc_epoch() || (state != IBV_QPS_RTR && state != IBV_QPS_RTS))
		return -EINVAL;
	return far->rkey_access ? far->rkey_access(qp, rkey, access) : -EOPNOTSUPP;
}

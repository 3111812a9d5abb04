// SPDX-License-Identifier: BSD-3-Clause
/* ibv_modify_qp and ibv_query_qp: checks, transitions, and what they set in motion. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/exec/crash_journal.h"
#include "hca/exec/exec.h"
#include "hca/exec/flush.h"
#include "hca/obj/cq.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/queue/explain.h"
#include "hca/queue/own_rxq.h"
#include "hca/queue/qp.h"
#include "hca/queue/qp_table.h"
#include "hca/run/agent.h"
#include "hca/run/far_datagram.h"
#include "hca/run/near.h"
#include "hca/run/path.h"
#include "hca/run/progress.h"
#include "hca/seg/token.h"
#include "include/weft/verbs_ext.h"

enum {
	MAX_24_BITS = 0xffffff,
	MAX_5_BITS = 31,
	MAX_RETRY = 7,
	/* Path migration is not offered: the values are accepted as by HCAs without it. */
	ACCEPTED_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |
			  IBV_ACCESS_ON_DEMAND | IBV_ACCESS_FLUSH_GLOBAL |
			  IBV_ACCESS_FLUSH_PERSISTENT,
};

static enum ibv_qp_state state_of(const struct hca_qp *qp)
{
	return end_state(&qp->me);
}

enum ibv_qp_state hca_qp_state(const struct hca_qp *qp)
{
	return state_of(qp);
}

/* ---- checks ---- */

static int refuse(const struct hca_qp *qp, const char *why)
{
	log_refusal("modify_qp of QP %#x refused: %s", qp->me.qpn, why);
	return -EINVAL;
}

/*
 * Adapters refuse a path MTU that the link does not carry; rdma_rxe takes it, and sends what fits.
 * Within this host nothing is longer than what carries it.
 */
static void note_mtu(const struct hca_qp *qp, unsigned wanted, const struct seg_path *path)
{
	unsigned most = seg_mtu_bytes(path->mtu);

	if (wanted <= path->mtu)
		return;
	if (path->interface)
		log_line(LOG_LVL_WARN,
			"QP %#x: its path MTU is larger than what its links carry: %u, not %u; "
			"longer packets are lost, and an adapter may refuse it",
			qp->me.qpn, seg_mtu_bytes(wanted), most);
	else
		log_line(LOG_LVL_INFO,
			"QP %#x: an adapter on this link may refuse the path MTU: %u, and the link "
			"carries %u",
			qp->me.qpn, seg_mtu_bytes(wanted), most);
}

/* Who serves it is chosen on the way to RTR; in SQD its path may change, but not whither. */
static bool stays_where_it_is(const struct hca_qp *qp, const struct seg_path *path)
{
	return state_of(qp) != IBV_QPS_SQD || !path->interface == !qp->me.qp->path.interface;
}

static int check_path(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	unsigned mtu = mask & IBV_QP_PATH_MTU ? a->path_mtu : qp->me.qp->mtu;
	struct seg_path path;
	const char *why;
	int rc = path_find(&a->ah_attr, &path, &why);

	if (rc == -EINVAL)
		return refuse(qp, why);
	if (rc == PATH_GROUP) {
		rc = -EHOSTUNREACH;
		why = "a multicast group is no other end of a connection";
	}
	if (rc >= 0 && !stays_where_it_is(qp, &path))
		return refuse(qp, "its path led to this host and would lead to another, or back");
	if (rc >= 0) {
		note_mtu(qp, mtu, &path);
		return 0;
	}
	log_line(LOG_LVL_WARN, "QP %#x: %s", qp->me.qpn, why);
	return rc;
}

/* The port of the QP with these attributes, port 1 before it has one; NULL: there is none such. */
static const struct fabric_port *port_of(
	const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	uint32_t number = mask & IBV_QP_PORT ? a->port_num : qp->attr.port_num;

	return fabric_port(proc_at()->fabric, number || mask & IBV_QP_PORT ? number : 1);
}

static bool alternate_ok(const struct ibv_qp_attr *a)
{
	const struct fabric_port *port = fabric_port(proc_at()->fabric, a->alt_port_num);

	return port && a->alt_timeout <= MAX_5_BITS && a->alt_pkey_index < port->n_pkeys;
}

static int check_values(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	const struct fabric_port *port = port_of(qp, a, mask);

	if (!port)
		return refuse(qp, "the device has no port of that number");
	if (mask & IBV_QP_PKEY_INDEX && a->pkey_index >= port->n_pkeys)
		return refuse(qp, "there is no P_Key at that index");
	if (mask & IBV_QP_ACCESS_FLAGS && a->qp_access_flags & ~(unsigned)ACCEPTED_ACCESS)
		return refuse(qp, "unknown bits in qp_access_flags");
	if (mask & IBV_QP_PATH_MTU && (a->path_mtu < IBV_MTU_256 || a->path_mtu > port->max_mtu))
		return refuse(qp, "the path MTU is not a code");
	if ((mask & IBV_QP_DEST_QPN && a->dest_qp_num > MAX_24_BITS) ||
		(mask & IBV_QP_RQ_PSN && a->rq_psn > MAX_24_BITS) ||
		(mask & IBV_QP_SQ_PSN && a->sq_psn > MAX_24_BITS))
		return refuse(qp, "a QP number or PSN has more than 24 bits");
	if ((mask & IBV_QP_MIN_RNR_TIMER && a->min_rnr_timer > MAX_5_BITS) ||
		(mask & IBV_QP_TIMEOUT && a->timeout > MAX_5_BITS))
		return refuse(qp, "a timer code has more than 5 bits");
	if ((mask & IBV_QP_RETRY_CNT && a->retry_cnt > MAX_RETRY) ||
		(mask & IBV_QP_RNR_RETRY && a->rnr_retry > MAX_RETRY))
		return refuse(qp, "a retry count has more than 3 bits");
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC && a->max_rd_atomic > HCA_MAX_RD_ATOMIC) ||
		(mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > HCA_MAX_RD_ATOMIC))
		return refuse(qp, "more outstanding READs than the device offers");
	if (mask & IBV_QP_PATH_MIG_STATE && a->path_mig_state > IBV_MIG_ARMED)
		return refuse(qp, "path_mig_state is not a code");
	if (mask & IBV_QP_ALT_PATH && !alternate_ok(a))
		return refuse(qp, "the alternate path's port, P_Key index or timeout is not valid");
	return mask & IBV_QP_AV ? check_path(qp, a, mask) : 0;
}

static int check(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask,
	enum ibv_qp_state from, enum ibv_qp_state to)
{
	int required, optional;

	if (mask & IBV_QP_CUR_STATE && a->cur_qp_state != from)
		return refuse(qp, "cur_qp_state is not the state of the QP");
	if (qp_transition(qp->init.qp_type, from, to, &required, &optional))
		return refuse(qp, "no such state transition");
	if ((mask & required) != required)
		return refuse(qp, "an attribute that this transition requires is missing");
	if (mask & ~(required | optional | IBV_QP_STATE))
		return refuse(qp, "an attribute that this transition does not take is given");
	return check_values(qp, a, mask);
}

/* ---- taking the attributes over ---- */

static void keep_path(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *k = &qp->attr;
	struct seg_path *path = &qp->me.qp->path;
	uint8_t beside = path->beside;
	const char *why;

	if (mask & IBV_QP_AV) {
		k->ah_attr = a->ah_attr;
		path_find(&a->ah_attr, path, &why);
		path->beside = beside; /* who serves it was chosen on the way to RTR */
	}
	if (mask & IBV_QP_ALT_PATH) {
		k->alt_ah_attr = a->alt_ah_attr;
		k->alt_pkey_index = a->alt_pkey_index;
		k->alt_port_num = a->alt_port_num;
		k->alt_timeout = a->alt_timeout;
	}
	if (mask & IBV_QP_PATH_MIG_STATE)
		k->path_mig_state = a->path_mig_state;
	if (mask & IBV_QP_PKEY_INDEX)
		k->pkey_index = a->pkey_index;
	if (mask & IBV_QP_PORT)
		k->port_num = a->port_num;
}

static void keep_protocol(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct seg_qp *s = qp->me.qp;

	if (mask & IBV_QP_QKEY)
		s->qkey = a->qkey;
	if (mask & IBV_QP_ACCESS_FLAGS)
		s->access = (unsigned)a->qp_access_flags | crash_qp_access();
	if (mask & IBV_QP_PATH_MTU)
		s->mtu = a->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		s->dest_qpn = a->dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		s->rq_psn = a->rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		s->sq_psn = a->sq_psn;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		s->rnr_timer = a->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		s->timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		s->retry_cnt = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		s->rnr_retry = a->rnr_retry;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		s->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		s->max_dest_rd_atomic = a->max_dest_rd_atomic;
}

/* ---- the transitions ---- */

/* Changes the state unless an executor moved the QP to ERR meanwhile. */
static bool move_state(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	uint32_t base = end_gen(&qp->me) << QPS_GEN_SHIFT | QPS_LIVE;
	uint32_t old = base | from;

	return atomic_compare_exchange_strong_explicit(
		&qp->me.qp->state, &old, base | to, memory_order_seq_cst, memory_order_relaxed);
}

/* Of receives; other threads may be landing what came, as regions go. */
static void skip_received(struct hca_qp *qp)
{
	struct seg_qp *s = qp->me.qp;

	lock_take(&qp->recv_cq->lock);
	atomic_store_explicit(&s->rq_head, qp->rq_tail, memory_order_relaxed);
	s->rq_base = qp->rq_tail;
	atomic_store_explicit(&qp->rq_poll, qp->rq_tail, memory_order_relaxed);
	qp->rq_landed = qp->rq_tail;
	atomic_store_explicit(&s->ring_head_seen,
		atomic_load_explicit(&s->ring_tail, memory_order_relaxed), memory_order_relaxed);
	atomic_store_explicit(&s->ring_head,
		atomic_load_explicit(&s->ring_tail, memory_order_relaxed), memory_order_release);
	lock_drop(&qp->recv_cq->lock);
}

/* Forgets all of the QP's past: rings, positions, the other end. */
static void to_reset(struct hca_qp *qp)
{
	struct seg_qp *s = qp->me.qp;
	uint32_t gen = (end_gen(&qp->me) + 1) & (UINT32_MAX >> QPS_GEN_SHIFT);

	explain_end(qp);
	qp_stop(qp, gen << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RESET);
	atomic_store_explicit(&qp->me.gen, gen, memory_order_relaxed);
	far_of(qp)->forget(qp, true);
	atomic_store_explicit(&qp->far, &near_ops, memory_order_release);
	qp->me.rxq.gen = qp->rxq.ref.gen = qp->rxq.ref.entry == s ? gen : qp->me.rxq.gen;
	s->dest_qpn = 0;
	s->peer_attach = 0;
	memset(&s->path, 0, sizeof s->path);
	s->qkey = 0;
	atomic_store_explicit(&s->last_wqe, 0, memory_order_relaxed);
	if (qp->rxq.ref.ring.slots)
		own_rxq_reset(&qp->rxq);
	atomic_store_explicit(&s->token, 0, memory_order_relaxed);
	atomic_store_explicit(&s->rq_token, 0, memory_order_relaxed);
	atomic_store_explicit(&s->park, 0, memory_order_relaxed);
	atomic_store_explicit(&s->park_reason, PARK_NONE, memory_order_relaxed);
	atomic_store_explicit(&s->deadline, 0, memory_order_relaxed);
	atomic_store_explicit(&s->parked_copy, 0, memory_order_relaxed);
	atomic_store_explicit(&s->alone, 0, memory_order_relaxed);
	atomic_store_explicit(&s->packets, 0, memory_order_relaxed);
	/* Positions go on counting: old done and posted words then match no new position. */
	atomic_store_explicit(&s->sq_head, qp->sq_tail, memory_order_relaxed);
	atomic_store_explicit(&qp->sq_poll, qp->sq_tail, memory_order_relaxed);
	if (qp->recv_cq)
		skip_received(qp);
	memset(&qp->attr, 0, sizeof qp->attr);
}

/* ERR: flush, then be sure that no peer touches our buffers any more. */
static void to_error(struct hca_qp *qp)
{
	struct exec *x = exec_get();

	far_take_in(qp);
	qp_set_error(&qp->me);
	far_of(qp)->stop(qp);
	if (x) {
		slot_enter(x->slot, qp->me.view.attach, qp->me.view.attach);
		qp_flush(x, &qp->me, false);
		slot_leave(x->slot);
		exec_put(x);
	}
	quiesce();
}

static void tell_drained(struct hca_qp *qp)
{
	struct exec *x = exec_get();

	if (x && !far_draining(qp, true))
		raise_qp_event(x, &qp->me, IBV_EVENT_SQ_DRAINED);
	exec_put(x);
}

static int transit(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask, enum ibv_qp_state from,
	enum ibv_qp_state to)
{
	bool found = true;

	if (to == IBV_QPS_RESET) {
		to_reset(qp);
		return 0;
	}
	if (to == IBV_QPS_ERR) {
		to_error(qp);
		return 0;
	}
	keep_path(qp, a, mask);
	keep_protocol(qp, a, mask);
	if (to == IBV_QPS_RTR && far_find(qp, &found))
		return -EHOSTUNREACH;
	if (!move_state(qp, from, to))
		return -EINVAL;
	if (to == IBV_QPS_RTR && !qp_connects(qp))
		far_datagram_listen(qp, true);
	if (to == IBV_QPS_RTR)
		far_run_in(qp); /* the peer may have sent already */
	if (!found)
		progress_watch(qp);
	if (to == IBV_QPS_RTS && from != IBV_QPS_RTS)
		far_run_out(qp);
	if (to == IBV_QPS_SQD && from == IBV_QPS_RTS) {
		quiesce();
		if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && a->en_sqd_async_notify)
			tell_drained(qp);
	}
	return 0;
}

int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from, to;
	int rc;

	if (qp->epoch != proc_epoch())
		return -EINVAL;
	agent_look();
	lock_take(&qp->modify_lock);
	from = state_of(qp);
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	rc = check(qp, attr, mask, from, to);
	if (!rc)
		rc = transit(qp, attr, mask, from, to);
	lock_drop(&qp->modify_lock);
	return rc;
}

int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	const struct seg_qp *s = qp->me.qp;
	uint32_t sent, expected;

	lock_take(&qp->modify_lock);
	far_of(qp)->psn(qp, &sent, &expected);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = state_of(qp);
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD && far_draining(qp, false);
	attr->qkey = s->qkey;
	attr->qp_access_flags = s->access & ~QPA_JOURNALED;
	attr->path_mtu = s->mtu;
	attr->dest_qp_num = s->dest_qpn;
	attr->rq_psn = expected & MAX_24_BITS;
	attr->sq_psn = sent & MAX_24_BITS;
	attr->min_rnr_timer = s->rnr_timer;
	attr->timeout = s->timeout;
	attr->retry_cnt = s->retry_cnt;
	attr->rnr_retry = s->rnr_retry;
	attr->max_rd_atomic = s->max_rd_atomic;
	attr->max_dest_rd_atomic = s->max_dest_rd_atomic;
	attr->cap = qp->init.cap;
	lock_drop(&qp->modify_lock);
	*init = qp->init;
	return 0;
}

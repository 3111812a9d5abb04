// SPDX-License-Identifier: BSD-3-Clause
/* Posting: from the program's lists to slots in the rings, then straight to execution. */
#include <errno.h>
#include <string.h>

#include "hca/api/hca.h"
#include "hca/exec/exec.h"
#include "hca/exec/flush.h"
#include "hca/exec/window.h"
#include "hca/proc/proc.h"
#include "hca/queue/explain.h"
#include "hca/queue/own_rxq.h"
#include "hca/run/ah.h"
#include "hca/run/far.h"
#include "hca/seg/opcode.h"
#include "hca/seg/park.h"

/* Not IBV_SEND_IP_CSUM, which is for devices that say IBV_DEVICE_UD_IP_CSUM or _RAW_IP_CSUM. */
enum { SEND_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE };

static int fill_inline(const struct ibv_send_wr *wr, struct seg_wqe *w, uint32_t max)
{
	uint8_t *to = (uint8_t *)w->sge;
	uint32_t room = max;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		if (s->length > room)
			return -EINVAL;
		memcpy(to, (const void *)(uintptr_t)s->addr, s->length);
		to += s->length;
		room -= s->length;
	}
	w->inline_len = max - room;
	w->num_sge = 0;
	w->flags |= WQE_INLINE;
	return 0;
}

static void fill_sges(const struct ibv_send_wr *wr, struct seg_wqe *w)
{
	for (int i = 0; i < wr->num_sge; i++) {
		w->sge[i].addr = wr->sg_list[i].addr;
		w->sge[i].length = wr->sg_list[i].length;
		w->sge[i].lkey = wr->sg_list[i].lkey;
	}
	w->num_sge = wr->num_sge;
}

static void fill_operands(const struct op *op, const struct ibv_send_wr *wr, struct seg_wqe *w)
{
	if (op->form == FORM_RDMA) {
		w->raddr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
	} else if (op->form == FORM_ATOMIC) {
		w->raddr = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->compare_add = wr->wr.atomic.compare_add;
		w->swap = wr->wr.atomic.swap;
	} else if (op->form == FORM_BIND) {
		const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

		w->raddr = info->addr;
		w->range_len = info->length;
		w->bind = bind_pack(wr->bind_mw.mw->rkey, info->mw_access_flags);
		w->rkey = wr->bind_mw.rkey;
		w->imm = info->mr ? info->mr->lkey : 0;
	} else {
		w->run = 0; /* hca/exec/op_local.c, peer_runs() */
	}
}

/* What is particular to a QP type.  -EINVAL: it has no such operation, or the handle is bad. */
static int fill_typed(const struct hca_qp *qp, const struct op *op, const struct ibv_send_wr *wr,
	struct seg_wqe *w)
{
	switch (qp->me.type) {
	case IBV_QPT_UC:
		return op->kind == OP_SEND || op->kind == OP_WRITE || op_is_local(op) ? 0 : -EINVAL;
	case IBV_QPT_UD:
		if (op->kind != OP_SEND || op->invalidates || !wr->wr.ud.ah ||
			wr->wr.ud.remote_qpn > 0xffffff)
			return -EINVAL;
		ah_fill(qp->pd, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey, w);
		return 0;
	case IBV_QPT_XRC_SEND:
		w->srqn[0] = wr->qp_type.xrc.remote_srqn >> 16;
		w->srqn[1] = wr->qp_type.xrc.remote_srqn >> 8;
		w->srqn[2] = wr->qp_type.xrc.remote_srqn;
		return 0;
	default:
		return -EINVAL; /* the target of XRC sends nothing */
	}
}

/* A flush, from hca_send_put(): the program's length, type and level came as those of an atomic. */
static void fill_flush(const struct ibv_send_wr *wr, struct seg_wqe *w)
{
	w->raddr = wr->wr.atomic.remote_addr;
	w->rkey = wr->wr.atomic.rkey;
	w->range_len = wr->wr.atomic.compare_add;
	w->flush = wr->wr.atomic.swap;
}

/* The 8 bytes of an ATOMIC WRITE fit where an SGE does. */
static uint32_t inline_room(const struct hca_qp *qp, const struct op *op)
{
	if (op->kind == OP_ATOMIC_WRITE && qp->max_inline < sizeof(uint64_t))
		return sizeof(uint64_t);
	return qp->max_inline;
}

/* Writes one request into its slot; nobody sees it before sq_tail moves. */
static int fill_send(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t pos)
{
	const struct op *op = op_of(wr->opcode);
	struct seg_wqe *w = end_wqe(&qp->me, pos);
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;

	if (!op_exists(op) || wr->num_sge < 0 || wr->send_flags & ~(unsigned)SEND_FLAGS)
		return -EINVAL;
	if ((uint32_t)wr->num_sge > qp->max_sge || (is_inline && !op_may_be_inline(op)))
		return -EINVAL;
	w->wr_id = wr->wr_id;
	w->opcode = wr->opcode;
	w->flags = wr->send_flags & 0xff;
	if (qp->sig_all || wr->send_flags & IBV_SEND_SIGNALED)
		w->flags |= WQE_SIGNALED;
	w->imm = wr->imm_data;
	w->polled = atomic_load_explicit(&qp->sq_poll, memory_order_relaxed);
	if (qp->me.type != IBV_QPT_RC && fill_typed(qp, op, wr, w))
		return -EINVAL;
	if (op->form != FORM_SEND)
		fill_operands(op, wr, w);
	if (is_inline)
		return fill_inline(wr, w, inline_room(qp, op));
	if (op->traits & OP_SGES)
		fill_sges(wr, w);
	else
		w->num_sge = 0;
	return 0;
}

static bool state_takes_sends(uint32_t s)
{
	return s == IBV_QPS_RTS || s == IBV_QPS_SQD || s == IBV_QPS_SQE || s == IBV_QPS_ERR;
}

static bool queue_full(const struct hca_qp *qp, uint32_t pos)
{
	return pos - atomic_load_explicit(&qp->sq_poll, memory_order_acquire) >= qp->sq_depth;
}

static int put_sends(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	uint32_t pos = qp->sq_tail;
	bool one_sided = true;
	int rc = 0;

	for (; wr; wr = wr->next, pos++) {
		if (queue_full(qp, pos))
			rc = -ENOMEM;
		else if (wr->opcode == IBV_WR_FLUSH)
			rc = -EINVAL; /* a struct ibv_send_wr has no room for it */
		else
			rc = fill_send(qp, wr, pos);
		if (rc) {
			*bad = wr;
			break;
		}
		one_sided = one_sided && op_is_one_sided(op_of(wr->opcode));
	}
	atomic_store_explicit(&qp->one_sided, one_sided, memory_order_relaxed);
	qp->sq_tail = pos;
	atomic_store_explicit(&qp->me.qp->sq_tail, pos, memory_order_release);
	return rc;
}

int hca_post_send(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int rc;

	if (!state_takes_sends(end_state(&qp->me))) {
		*bad = wr;
		explain_post_send(qp, wr, -EINVAL);
		return -EINVAL;
	}
	lock_take(&qp->sq_lock);
	rc = put_sends(qp, wr, bad);
	lock_drop(&qp->sq_lock);
	if (__builtin_expect(rc, 0))
		explain_post_send(qp, *bad, rc);
	far_posted(qp);
	return rc;
}

/* ---- one request at a time, published together ---- */

void hca_send_start(struct hca_qp *qp)
{
	lock_take(&qp->sq_lock);
	qp->sq_built = qp->sq_tail;
	atomic_store_explicit(&qp->one_sided, true, memory_order_relaxed);
}

int hca_send_put(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	int rc = queue_full(qp, qp->sq_built) ? -ENOMEM : fill_send(qp, wr, qp->sq_built);
	if (__builtin_expect(rc, 0)) {
		explain_post_send(qp, wr, rc);
		return rc;
	}
	if (wr->opcode == IBV_WR_FLUSH)
		fill_flush(wr, end_wqe(&qp->me, qp->sq_built));
	if (!op_is_one_sided(op_of(wr->opcode)))
		atomic_store_explicit(&qp->one_sided, false, memory_order_relaxed);
	qp->sq_built++;
	return 0;
}

int hca_send_commit(struct hca_qp *qp)
{
	if (!state_takes_sends(end_state(&qp->me))) {
		const struct seg_wqe *w = end_wqe(&qp->me, qp->sq_tail);

		explain_post_send(
			qp, &(struct ibv_send_wr){.wr_id = w->wr_id, .opcode = w->opcode}, -EINVAL);
		hca_send_abort(qp);
		return -EINVAL;
	}
	qp->sq_tail = qp->sq_built;
	atomic_store_explicit(&qp->me.qp->sq_tail, qp->sq_built, memory_order_release);
	lock_drop(&qp->sq_lock);
	far_posted(qp);
	return 0;
}

void hca_send_abort(struct hca_qp *qp)
{
	lock_drop(&qp->sq_lock);
}

static int fill_recv(struct hca_qp *qp, const struct ibv_recv_wr *wr, uint32_t pos)
{
	struct seg_rqe *r = end_rqe(&qp->me, pos);

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq_max_sge)
		return -EINVAL;
	recv_fill(r, wr);
	return 0;
}

/* Puts one receive; true in *parked if the peer was waiting for it. */
static int put_recv(struct hca_qp *qp, const struct ibv_recv_wr *wr, bool *parked)
{
	uint32_t pos = qp->rq_tail;
	int rc;

	if (pos - atomic_load_explicit(&qp->rq_poll, memory_order_acquire) >= qp->rq_depth)
		return -ENOMEM;
	rc = fill_recv(qp, wr, pos);
	if (rc)
		return rc;
	*parked |= park_publish(&end_rqe(&qp->me, pos)->posted, pos + 1, &qp->me.qp->park);
	qp->rq_tail = pos + 1;
	return 0;
}

static void flush_posted(struct hca_qp *qp)
{
	struct exec *x = exec_get();

	if (!x)
		return;
	slot_enter(x->slot, qp->me.view.attach, qp->me.view.attach);
	qp_flush_recv(x, &qp->me);
	slot_leave(x->slot);
	exec_put(x);
}

/* Not to a queue with one producer: to that of a UD QP, or not at all. */
static int post_elsewhere(struct hca_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	bool parked = false;
	int rc;

	if (end_state(&qp->me) == IBV_QPS_RESET || !qp->rxq.ref.ring.slots) {
		*bad = wr;
		explain_post_recv(qp, wr, -EINVAL);
		return -EINVAL;
	}
	rc = own_rxq_post(&qp->rxq, wr, bad, &parked);
	if (__builtin_expect(rc, 0))
		explain_post_recv(qp, *bad, rc);
	if (end_state(&qp->me) == IBV_QPS_ERR)
		flush_posted(qp);
	return rc;
}

int hca_post_recv(struct hca_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	bool parked = false;
	int rc = 0;

	if (end_state(&qp->me) == IBV_QPS_RESET || !qp->me.rq)
		return post_elsewhere(qp, wr, bad);
	lock_take(&qp->rq_lock);
	for (; wr; wr = wr->next) {
		rc = put_recv(qp, wr, &parked);
		if (rc) {
			*bad = wr;
			break;
		}
	}
	lock_drop(&qp->rq_lock);
	if (__builtin_expect(rc, 0))
		explain_post_recv(qp, *bad, rc);
	if (parked)
		far_run_in(qp);
	if (end_state(&qp->me) == IBV_QPS_ERR)
		flush_posted(qp);
	return rc;
}

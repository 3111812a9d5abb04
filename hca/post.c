// SPDX-License-Identifier: BSD-3-Clause
/* Posting: from the program's lists to slots in the rings, then straight to execution. */
#include <errno.h>
#include <string.h>

#include "hca/ah.h"
#include "hca/exec.h"
#include "hca/objects.h"
#include "hca/opcode.h"
#include "hca/park.h"
#include "hca/proc.h"
#include "hca/qp_state.h"
#include "hca/srq.h"

enum {
	SEND_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE |
		     IBV_SEND_IP_CSUM
};

static int fill_inline(const struct hca_qp *qp, const struct ibv_send_wr *wr, struct seg_wqe *w)
{
	uint8_t *to = (uint8_t *)w->sge;
	uint32_t room = qp->max_inline;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		if (s->length > room)
			return -EINVAL;
		memcpy(to, (const void *)(uintptr_t)s->addr, s->length);
		to += s->length;
		room -= s->length;
	}
	w->inline_len = qp->max_inline - room;
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
	if (op->kind == OP_ATOMIC) {
		w->raddr = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->compare_add = wr->wr.atomic.compare_add;
		w->swap = wr->wr.atomic.swap;
	} else if (op->kind != OP_SEND) {
		w->raddr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
	}
}

/* What is particular to a QP type.  -EINVAL: it has no such operation, or the handle is bad. */
static int fill_typed(const struct hca_qp *qp, const struct op *op, const struct ibv_send_wr *wr,
	struct seg_wqe *w)
{
	switch (qp->me.type) {
	case IBV_QPT_UC:
		return op->kind == OP_SEND || op->kind == OP_WRITE ? 0 : -EINVAL;
	case IBV_QPT_UD:
		if (op->kind != OP_SEND || !wr->wr.ud.ah || wr->wr.ud.remote_qpn > 0xffffff)
			return -EINVAL;
		ah_fill(wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey, w);
		return 0;
	case IBV_QPT_XRC_SEND:
		w->aux[0] = wr->qp_type.xrc.remote_srqn >> 16;
		w->aux[1] = wr->qp_type.xrc.remote_srqn >> 8;
		w->aux[2] = wr->qp_type.xrc.remote_srqn;
		return 0;
	default:
		return -EINVAL; /* the target of XRC sends nothing */
	}
}

/* Writes one request into its slot; nobody sees it before sq_tail moves. */
static int fill_send(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t pos)
{
	const struct op *op = op_of(wr->opcode);
	struct seg_wqe *w = end_wqe(&qp->me, pos);
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;

	if (op->kind == OP_NONE || wr->num_sge < 0 || wr->send_flags & ~(unsigned)SEND_FLAGS)
		return -EINVAL;
	if ((uint32_t)wr->num_sge > qp->max_sge || (is_inline && op->kind > OP_WRITE))
		return -EINVAL;
	w->wr_id = wr->wr_id;
	w->opcode = wr->opcode;
	w->flags = wr->send_flags & 0xff;
	if (qp->sig_all || wr->send_flags & IBV_SEND_SIGNALED)
		w->flags |= WQE_SIGNALED;
	w->imm = wr->imm_data;
	if (qp->me.type != IBV_QPT_RC && fill_typed(qp, op, wr, w))
		return -EINVAL;
	if (qp->me.type != IBV_QPT_UD)
		fill_operands(op, wr, w);
	if (is_inline)
		return fill_inline(qp, wr, w);
	fill_sges(wr, w);
	return 0;
}

static bool state_takes_sends(uint32_t s)
{
	return s == IBV_QPS_RTS || s == IBV_QPS_SQD || s == IBV_QPS_SQE || s == IBV_QPS_ERR;
}

static int put_sends(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	uint32_t pos = qp->sq_tail;
	int rc = 0;

	for (; wr; wr = wr->next, pos++) {
		if (pos - atomic_load_explicit(&qp->sq_poll, memory_order_acquire) >= qp->sq_depth)
			rc = -ENOMEM;
		else
			rc = fill_send(qp, wr, pos);
		if (rc) {
			*bad = wr;
			break;
		}
	}
	qp->sq_tail = pos;
	atomic_store_explicit(&qp->me.qp->sq_tail, pos, memory_order_release);
	return rc;
}

int hca_post_send(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int rc;

	if (!state_takes_sends(end_state(&qp->me))) {
		*bad = wr;
		return -EINVAL;
	}
	lock_take(&qp->sq_lock);
	rc = put_sends(qp, wr, bad);
	lock_drop(&qp->sq_lock);
	if (!atomic_load_explicit(&qp->peer, memory_order_relaxed) && qp_connects(qp) &&
		end_state(&qp->me) != IBV_QPS_ERR) {
		lock_take(&qp->modify_lock);
		if (!atomic_load_explicit(&qp->peer, memory_order_relaxed))
			qp_find_peer(qp);
		lock_drop(&qp->modify_lock);
	}
	qp_run_out(qp);
	return rc;
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
	prefetch_write(end_rqe(&qp->me, pos + 2)); /* a peer read it last */
	return 0;
}

static void flush_posted(struct hca_qp *qp)
{
	struct exec *x = exec_self();

	if (!x)
		return;
	slot_enter(x->slot, qp->me.view.attach, qp->me.view.attach);
	qp_flush_recv(x, &qp->me);
	slot_leave(x->slot);
}

/* Not to a queue with one producer: to that of a UD QP, or not at all. */
static int post_elsewhere(struct hca_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	bool parked = false;
	int rc;

	if (end_state(&qp->me) == IBV_QPS_RESET || !qp->rx.ref.ring.slots) {
		*bad = wr;
		return -EINVAL;
	}
	rc = rx_post(&qp->rx, wr, bad, &parked);
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
	if (parked)
		qp_run_in(qp);
	if (end_state(&qp->me) == IBV_QPS_ERR)
		flush_posted(qp);
	return rc;
}

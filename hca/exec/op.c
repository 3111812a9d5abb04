// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/op.h"

#include <errno.h>

#include "hca/exec/fail.h"
#include "hca/exec/op_atomic.h"
#include "hca/exec/op_flush.h"
#include "hca/exec/op_local.h"
#include "hca/exec/op_rdma.h"
#include "hca/exec/op_send.h"
#include "hca/exec/op_tm.h"

static inline bool types_match(const struct work *w)
{
	if (w->req->type == IBV_QPT_XRC_SEND)
		return w->resp->type == IBV_QPT_XRC_RECV;
	return w->req->type == w->resp->type;
}

/*
 * True if resp is the other end of this very connection and can take requests.  Both must have
 * found each other: who takes memory or a QP away waits for the processes it knows.  (UC starts
 * anew with any first packet, whatever its PSN.)
 */
static inline bool responder_ready(const struct work *w)
{
	const struct seg_qp *q = w->resp->qp;

	if (view_dead(&w->resp->view) || !end_receives(w->resp) || !types_match(w) ||
		w->req->qp->peer_attach != w->resp->view.attach)
		return false;
	return q->dest_qpn == w->req->qpn && q->peer_attach == w->req->view.attach &&
	       (q->rq_psn == w->req->qp->sq_psn || w->req->type == IBV_QPT_UC);
}

static bool is_in_domain(const struct end *srq, const struct end *resp)
{
	return srq->type == SEG_TYPE_XRC_SRQ && rxq_live(&srq->rxq) &&
	       srq->qp->xrcd == resp->qp->xrcd;
}

/*
 * XRC: memory and receives are those of the shared receive queue that the request names.
 * STEP_DONE: it is found.
 */
static __attribute__((noinline)) enum step find_memory(struct work *w)
{
	int rc = w->x->find_srq ? w->x->find_srq(w, w->srqn, &w->mem) : -EXDEV;

	if (!rc && is_in_domain(w->mem, w->resp))
		return STEP_DONE;
	w->mem = w->resp;
	if (rc == -EXDEV)
		return STEP_NOT_OURS;
	/* Whose death was noticed just now has no queues: he does not refuse. */
	if ((rc && rc != -ENOENT) || !responder_ready(w))
		return STEP_NO_PEER;
	return work_fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

static enum step send_message(struct work *w)
{
	if (w->mem->recv_cq.cq)
		cq_prefetch(&w->mem->recv_cq);
	if (w->mem->rxq.ring.slots)
		rxq_fetch_head(&w->mem->rxq);
	return w->mem->rxq.ring.slots && w->mem->rxq.matches_tags ? op_tm_send(w) : op_send(w);
}

/* What two ends carry out, by enum op_kind. */
static enum step (*const operations[OP_KINDS])(struct work *w) = {
	[OP_SEND] = send_message,
	[OP_WRITE] = op_write,
	[OP_ATOMIC_WRITE] = op_atomic_write,
	[OP_READ] = op_read,
	[OP_ATOMIC] = op_atomic,
	[OP_FLUSH] = op_flush,
};

enum step op_execute(struct work *w)
{
	if (w->length > 1ull << 31)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (op_is_local(w->op))
		return op_local(w);
	if (!responder_ready(w))
		return STEP_NO_PEER;
	if (w->plain && w->op->kind == OP_SEND) {
		cq_prefetch(&w->mem->recv_cq);
		return op_send_plain(w);
	}
	if (w->req->type == IBV_QPT_XRC_SEND) {
		enum step s = find_memory(w);

		if (s != STEP_DONE)
			return s;
	}
	return operations[w->op->kind](w);
}

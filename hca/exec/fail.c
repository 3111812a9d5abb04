// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/fail.h"

#include "hca/exec/carry.h"
#include "hca/exec/flush.h"
#include "hca/exec/range.h"
#include "hca/exec/respond.h"

static const enum seg_counter error_counters[] = {
	[IBV_WC_LOC_PROT_ERR] = CTR_ERR_LOC_PROT,
	[IBV_WC_LOC_LEN_ERR] = CTR_ERR_LOC_LEN,
	[IBV_WC_REM_ACCESS_ERR] = CTR_ERR_REM_ACCESS,
	[IBV_WC_REM_INV_REQ_ERR] = CTR_ERR_REM_INV_REQ,
	[IBV_WC_REM_OP_ERR] = CTR_ERR_REM_OP,
	[IBV_WC_RNR_RETRY_EXC_ERR] = CTR_ERR_RNR,
	[IBV_WC_RETRY_EXC_ERR] = CTR_ERR_RETRY,
};

void work_count_error(struct exec *x, enum ibv_wc_status status)
{
	if (status < sizeof error_counters / sizeof *error_counters && error_counters[status])
		count_add(x, error_counters[status], 1);
}

void work_fail(struct work *w, enum ibv_wc_status status)
{
	const struct outcome o = {.status = status};

	work_count_error(w->x, status);
	qp_set_send_error(w->req);
	complete_send(w->x, w->req, w->pos, &o);
	qp_flush(w->x, w->req, true);
}

enum step work_failed(struct work *w, enum ibv_wc_status status)
{
	work_fail(w, status);
	return STEP_FAILED;
}

enum step work_blame(struct work *w, enum ibv_wc_status status)
{
	if (w->req->type == IBV_QPT_UC)
		return work_drop(w, CTR_DROP_ACCESS);
	return work_failed(w, status);
}

enum step work_fail_both(struct work *w, enum ibv_wc_status status, enum ibv_event_type event)
{
	const struct seg_header *from = &w->req->view.seg->hdr;
	const struct asker who = {.qpn = w->req->qpn,
		.pid = from->pid,
		.comm = from->comm,
		.opcode = end_wqe(w->req, w->pos)->opcode};

	if (w->req->type != IBV_QPT_UC)
		respond_refuse(w, &who, status, event);
	return work_blame(w, status);
}

enum step work_fail_range(struct work *w, unsigned need)
{
	enum ibv_wc_status status = range_refusal(w, need);

	return work_fail_both(w, status,
		status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
}

enum step work_receive_failed(
	struct work *w, enum ibv_wc_status recv_status, enum ibv_wc_status send_status)
{
	respond_receive_failed(w, w->req->qpn, recv_status);
	return work_blame(w, send_status);
}

/* ---- when bytes were not moved ---- */

bool work_requester_fault(enum move_result r, bool requester_here)
{
	return r == (requester_here ? MOVE_FAULT_LOCAL : MOVE_FAULT_REMOTE);
}

/*
 * A region is changing over: the request begins anew when that is through.  Its owner may have
 * died in the middle of it.
 */
static enum step busy(struct work *w)
{
	const struct view *v = w->req->view.pid ? &w->req->view : &w->mem->view;

	if (v->pid && !carry_alive(w, v))
		return STEP_NO_PEER;
	count_add(w->x, CTR_MAP_BUSY, 1);
	return STEP_BUSY;
}

/* Has a region of the requester, on which the request relied, gone? */
static bool own_gone(const struct work *w)
{
	for (unsigned i = 0; i < w->num_sge && !w->inline_data; i++) {
		const struct seg_sge s = w->sge[i];

		if (s.length && !mr_has_key(seg_mr_of(w->req->view.seg, s.lkey), s.lkey))
			return true;
	}
	return false;
}

/* A region or a QP was taken away in the middle, or its agent says that it is not there. */
static enum step stopped(struct work *w, enum ibv_wc_status remote)
{
	if (end_state(w->req) != IBV_QPS_RTS) {
		qp_flush(w->x, w->req, true);
		return STEP_FAILED;
	}
	if (own_gone(w))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	return end_receives(w->resp) ? work_blame(w, remote) : STEP_NO_PEER;
}

enum step work_move_failed(struct work *w, enum move_result r, enum ibv_wc_status remote)
{
	if (r == MOVE_GONE)
		return STEP_NO_PEER;
	if (r == MOVE_LATER)
		return STEP_LATER;
	if (r == MOVE_BUSY)
		return STEP_BUSY;
	if (r == MOVE_LATE)
		return work_failed(w, IBV_WC_RETRY_EXC_ERR);
	if (r == MOVE_ANEW)
		return busy(w);
	if (r == MOVE_TAKEN || r == MOVE_DENIED)
		return stopped(w, remote);
	if (r == MOVE_REFUSED)
		return work_blame(w, IBV_WC_REM_OP_ERR);
	if (work_requester_fault(r, end_is_here(w->req)))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (remote == IBV_WC_REM_ACCESS_ERR)
		return work_fail_both(w, remote, IBV_EVENT_QP_ACCESS_ERR);
	return work_blame(w, remote);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/op_rdma.h"

#include "hca/exec/carry.h"
#include "hca/exec/fail.h"
#include "hca/exec/op_plain.h"
#include "hca/exec/range.h"
#include "hca/exec/receive.h"

enum step op_fail_rd_atomic(struct work *w)
{
	if (!w->req->qp->max_rd_atomic)
		return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
	return work_fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

enum step op_write(struct work *w)
{
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct held held;
	struct payload src, dst;
	enum move_result moved;
	enum step s;

	if (op_rdma_plain(w, &s))
		return s;
	if (!range_source(w, &src, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (!range_remote(w, w->length, w->op->remote_access, &dst, &held))
		return work_fail_range(w, w->op->remote_access);
	if (w->op->takes_recv) {
		s = receive_find(w);
		if (s != STEP_DONE)
			return s;
	}
	moved = carry(w, &src, &dst, &held);
	if (moved != MOVE_OK) {
		s = work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
		if (w->op->takes_recv)
			receive_leave(w);
		return s;
	}
	if (w->op->takes_recv) {
		struct received r = {.where = RQ_DIRECT};

		receive_fill(w, &r, w->req->qpn);
		receive_note_established(w);
		return receive_finish_both(w, &o, &r);
	}
	return work_succeed(w);
}

enum step op_read(struct work *w)
{
	struct held held;
	struct payload src, dst;
	void (*pushed)(struct work * w);
	enum move_result moved;
	enum step s;

	if (op_has_rd_atomic(w) && op_rdma_plain(w, &s))
		return s;
	if (!range_sink(w, &dst, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (!op_has_rd_atomic(w))
		return op_fail_rd_atomic(w);
	if (!range_remote(w, w->length, w->op->remote_access, &src, &held))
		return work_fail_range(w, w->op->remote_access);
	pushed = src.way->pushed;
	moved = carry(w, &src, &dst, &held);
	if (moved != MOVE_OK)
		return work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	if (pushed)
		pushed(w);
	return work_succeed(w);
}

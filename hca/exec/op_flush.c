// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/op_flush.h"

#include "hca/exec/fail.h"
#include "hca/exec/op_rdma.h"
#include "hca/exec/persist.h"
#include "hca/exec/range.h"
#include "hca/exec/way_table.h"

bool flush_range(struct work *w, struct payload *p, struct held *held)
{
	unsigned need = op_rights(w->op, w->flush);
	bool allowed;

	if (!flush_is_whole(w->flush))
		return range_remote(w, w->range_len, need, p, held);
	payload_begin(p, held);
	allowed = (w->resp->qp->access & need) == need &&
		  resolve_whole(w->mem, w->rkey, need, &p->l, held);
	if (allowed)
		way_of_responder(w, p, held);
	return allowed;
}

enum move_result flush_carry_out(struct work *w, struct payload *range, const struct held *held)
{
	enum move_result r = MOVE_OK;

	atomic_thread_fence(memory_order_seq_cst);
	if (flush_types(w->flush) & IBV_FLUSH_PERSISTENT)
		r = persist_range(w, range, held);
	if (r == MOVE_OK && range->way->pushed)
		range->way->pushed(w);
	return r;
}

enum step op_flush(struct work *w)
{
	struct held held;
	struct payload range;
	enum move_result r;

	if (!op_has_rd_atomic(w))
		return op_fail_rd_atomic(w);
	held_reset(&held);
	if (!flush_range(w, &range, &held))
		return work_fail_range(w, op_rights(w->op, w->flush));
	r = flush_carry_out(w, &range, &held);
	return r == MOVE_OK ? work_succeed(w) : work_move_failed(w, r, IBV_WC_REM_ACCESS_ERR);
}

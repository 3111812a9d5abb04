// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/op_local.h"

#include "hca/exec/fail.h"
#include "hca/exec/window.h"
#include "hca/seg/token.h"

/*
 * Is somebody still executing what comes from the peer, who may have looked at a key that is void
 * now?  One that began since does not count: the slot remembers which run it was.
 */
static bool peer_runs(const struct work *w)
{
	struct seg_wqe *slot = end_wqe(w->req, w->pos);
	uint64_t now;

	if (!w->resp)
		return false;
	now = atomic_load_explicit(&w->resp->qp->token, memory_order_seq_cst);
	if (!token_attach(now) || (w->run && (w->run ^ now) & TOKEN_GEN_MASK))
		return false;
	slot->run = now;
	return true;
}

enum step op_local(struct work *w)
{
	const struct outcome o = {.status = IBV_WC_SUCCESS};

	if (w->op->kind == OP_BIND) {
		if (!window_bind(w))
			return work_failed(w, IBV_WC_MW_BIND_ERR);
	} else {
		if (!window_invalidate(w->req, w->imm, w->req->qpn, w->pos))
			return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
		atomic_thread_fence(memory_order_seq_cst);
		if (peer_runs(w))
			return STEP_BUSY;
	}
	complete_send(w->x, w->req, w->pos, &o);
	return STEP_DONE;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/work.h"

bool work_read(struct work *w, uint32_t pos)
{
	const struct seg_wqe *slot = end_wqe(w->req, pos);

	w->pos = pos;
	w->flags = slot->flags;
	w->num_sge = slot->num_sge;
	w->imm = slot->imm;
	w->rkey = slot->rkey;
	w->raddr = slot->raddr;
	w->op = op_of(slot->opcode);
	if (w->req->type == IBV_QPT_XRC_SEND)
		w->srqn = slot->srqn[0] << 16 | slot->srqn[1] << 8 | slot->srqn[2];
	w->sge = slot->sge;
	w->inline_data = NULL;
	w->shared = false;
	w->length = 0;
	if (w->op->traits & OP_OPERANDS) {
		w->fetch_add = slot->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		w->compare_add = slot->compare_add;
		w->swap = slot->swap;
	}
	/* Our lists hold so many, whatever the slots of a peer's queue could. */
	if (w->num_sge > w->req->sge_max || w->num_sge > SGL_MAX - 1)
		return false;
	if (w->flags & WQE_INLINE) {
		w->inline_data = (const uint8_t *)slot->sge;
		w->length = slot->inline_len;
		return op_may_be_inline(w->op) && w->length <= w->req->sq_stride - sizeof *slot;
	}
	for (unsigned i = 0; i < w->num_sge; i++)
		w->length += w->sge[i].length;
	return op_exists(w->op);
}

static void count_packets(struct work *w)
{
	unsigned mtu_log = seg_mtu_log(w->req->qp->mtu);
	uint64_t n = (w->length + (1u << mtu_log) - 1) >> mtu_log;
	_Atomic uint64_t *packets = &w->req->qp->packets;
	uint64_t v = atomic_load_explicit(packets, memory_order_relaxed);

	atomic_store_explicit(packets, v + (n ? n : 1), memory_order_relaxed);
}

enum step work_drop(struct work *w, enum seg_counter why)
{
	count_add(w->x, why, 1);
	return work_succeed(w);
}

enum step work_succeed(struct work *w)
{
	const struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};

	count_packets(w);
	complete_send(w->x, w->req, w->pos, &o);
	return STEP_DONE;
}

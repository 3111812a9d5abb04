// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/op_atomic.h"

#include "hca/exec/carry.h"
#include "hca/exec/exec_agent.h"
#include "hca/exec/fail.h"
#include "hca/exec/op_rdma.h"
#include "hca/exec/range.h"

/* Either end's memory is only reached by an agent, which needs a thread that may sleep. */
static bool agent_due(const struct work *w)
{
	return (view_by_agent(&w->req->view) || view_by_agent(&w->mem->view)) &&
	       exec_agent_later(w);
}

enum move_result atomic_carry_out(
	struct work *w, struct payload *target, const struct held *held, uint64_t *word)
{
	enum move_result moved;

	if (held->what & HELD_CHANGES)
		return MOVE_ANEW;
	if (w->op->kind == OP_ATOMIC_WRITE)
		return target->way->store(w, target, held, *word);
	moved = target->way->update(w, target, held, word);
	if (moved == MOVE_OK)
		count_add(w->x, CTR_ATOMICS, 1);
	return moved;
}

enum step op_atomic(struct work *w)
{
	struct held held;
	struct payload target, result, old;
	enum move_result moved;
	uint64_t before;

	if (w->length != sizeof before)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (!range_sink(w, &result, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (!op_has_rd_atomic(w))
		return op_fail_rd_atomic(w);
	if (w->raddr % sizeof before)
		return work_fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	if (!range_remote(w, sizeof before, w->op->remote_access, &target, &held))
		return work_fail_range(w, w->op->remote_access);
	/* Before the update: it must not be done twice. */
	if (agent_due(w) || way_is_later(w, &result, &held) || way_is_later(w, &target, &held))
		return STEP_LATER;
	moved = result.way->here ? MOVE_OK : carry_by_call(w, &held);
	if (moved == MOVE_OK)
		moved = atomic_carry_out(w, &target, &held, &before);
	if (moved != MOVE_OK)
		return work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	payload_of_bytes(&old, &before, sizeof(uint64_t));
	moved = carry(w, &old, &result, &held);
	if (moved != MOVE_OK)
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	return work_succeed(w);
}

/* The requester's 8 bytes, wherever they are. */
static enum move_result fetch_word(struct work *w, struct held *held, uint64_t *word)
{
	struct payload src, here;

	if (!range_source(w, &src, held))
		return MOVE_FAULT_LOCAL;
	payload_of_bytes(&here, word, sizeof(uint64_t));
	return carry(w, &src, &here, held);
}

enum step op_atomic_write(struct work *w)
{
	struct held held;
	struct payload target;
	enum move_result moved;
	uint64_t word;

	if (w->length != sizeof word)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (agent_due(w))
		return STEP_LATER;
	moved = fetch_word(w, &held, &word);
	if (moved == MOVE_LATER || moved == MOVE_ANEW)
		return work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	if (moved != MOVE_OK)
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (!op_has_rd_atomic(w))
		return op_fail_rd_atomic(w);
	if (w->raddr % sizeof word)
		return work_fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	if (!range_remote(w, sizeof word, w->op->remote_access, &target, &held))
		return work_fail_range(w, w->op->remote_access);
	moved = atomic_carry_out(w, &target, &held, &word);
	if (moved != MOVE_OK)
		return work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	return work_succeed(w);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/op_plain.h"

#include "hca/exec/carry.h"
#include "hca/exec/fail.h"
#include "pages/copy.h"

/* Notes the region of that key as one that the request relies on. */
static struct seg_mr *rely_on(struct held *held, const struct view *v, uint32_t key)
{
	struct seg_mr *mr = seg_mr_of(v->seg, key);

	held->mr[held->n++] = (struct held_mr){.mr = mr,
		.key = key,
		.share = atomic_load_explicit(&mr->share, memory_order_acquire)};
	return mr;
}

/* Our piece, or NULL. */
static void *piece_here(const struct work *w, unsigned need, struct held *held)
{
	const struct seg_sge s = w->sge[0];

	if (w->num_sge != 1)
		return NULL;
	rely_on(held, &w->req->view, s.lkey);
	if (held->mr[0].share == MR_BUSY)
		return NULL;
	return resolve_plain(&w->req->view, w->req->pd, &s, w->length, need);
}

/* Where the peer's bytes are mapped here, or NULL. */
static void *piece_there(const struct work *w, unsigned need, struct held *held)
{
	const struct end *e = w->mem;
	struct seg_mr *mr = rely_on(held, &e->view, w->rkey);
	uint64_t off;

	if ((e->qp->access & need) != need || !mr_has_key(mr, w->rkey) ||
		!mr_covers(mr, e->pd, w->raddr, w->length, need, &off) || mr->flags ||
		held->mr[1].share != MR_MAPPED || !e->view.arena)
		return NULL;
	return arena_at(e->view.arena, mr->addr + off + mr->shift, w->length);
}

/* In one step that no other process waits for in vain. */
static bool is_plain(const struct work *w)
{
	return w->mem == w->resp && w->resp->view.pid && !w->req->view.pid && w->length &&
	       !w->inline_data && !w->op->takes_recv && !way_is_journaled(w) &&
	       carry_in_one_step(w, w->length);
}

bool op_rdma_plain(struct work *w, enum step *s)
{
	bool read = w->op->kind == OP_READ;
	enum move_result moved;
	void *here, *there;
	struct held held;

	if (!is_plain(w))
		return false;
	held.n = 0;
	here = piece_here(w, read ? IBV_ACCESS_LOCAL_WRITE : 0, &held);
	there = here ? piece_there(w, w->op->remote_access, &held) : NULL;
	if (!there || !carry_alive(w, &w->mem->view))
		return false;
	mr_note_use(held.mr[1].mr);
	if (read)
		copy_ordered(here, there, w->length);
	else
		copy_ordered(there, here, w->length);
	w->moved += w->length;
	count_add(w->x, CTR_MAP_BYTES, w->length);
	moved = carry_arrived(w, &held);
	*s = moved == MOVE_OK ? work_succeed(w) : work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	return true;
}

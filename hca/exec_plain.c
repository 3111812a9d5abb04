// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec_plain.h"

#include "hca/carry.h"
#include "hca/exec_crash.h"
#include "pages/copy.h"

/* A region and the key by which it was found. */
struct region {
	struct seg_mr *mr;
	uint32_t key;
};

static uint32_t share_of(const struct region *r)
{
	return atomic_load_explicit(&r->mr->share, memory_order_acquire);
}

/* Our piece, or NULL. */
static void *piece_here(const struct work *w, unsigned need, struct region *r)
{
	const struct seg_sge s = w->sge[0];
	void *at;

	*r = (struct region){seg_mr_of(w->req->view.seg, s.lkey), s.lkey};
	if (w->num_sge != 1)
		return NULL;
	at = resolve_plain(&w->req->view, w->req->pd, &s, w->length, need);
	return at && share_of(r) != MR_BUSY ? at : NULL;
}

/* Where the peer's bytes are mapped here, or NULL. */
static void *piece_there(const struct work *w, unsigned need, struct region *r)
{
	const struct end *e = w->mem;
	uint64_t off;

	*r = (struct region){seg_mr_of(e->view.seg, w->rkey), w->rkey};
	if ((e->qp->access & need) != need || !mr_has_key(r->mr, w->rkey) ||
		!mr_covers(r->mr, e->pd, w->raddr, w->length, need, &off) || r->mr->flags ||
		share_of(r) != MR_MAPPED || !e->view.arena)
		return NULL;
	return arena_at(e->view.arena, r->mr->addr + off + r->mr->shift, w->length);
}

/* In one step that no other process waits for in vain. */
static bool is_plain(const struct work *w)
{
	return w->mem == w->resp && w->resp->view.pid && !w->req->view.pid && w->length &&
	       !w->inline_data && !w->op->takes_recv && !exec_crash_on(w) &&
	       carry_in_one_step(w, w->length);
}

bool work_rdma_plain(struct work *w, enum step *s)
{
	bool read = w->op->kind == OP_READ;
	struct region ours, theirs;
	void *here, *there;

	if (!is_plain(w))
		return false;
	here = piece_here(w, read ? IBV_ACCESS_LOCAL_WRITE : 0, &ours);
	there = here ? piece_there(w, w->op->remote_access, &theirs) : NULL;
	if (!there || !carry_alive(w, &w->mem->view))
		return false;
	mr_note_use(theirs.mr);
	if (read)
		copy_ordered(here, there, w->length);
	else
		copy_ordered(there, here, w->length);
	w->moved += w->length;
	w->x->copies = false;
	count_add(w->x, CTR_MAP_BYTES, w->length);
	/* Who passed us took one of the regions, and nobody will see what was stored. */
	if (slot_passed(w->x->slot) &&
		!(mr_has_key(ours.mr, ours.key) && mr_has_key(theirs.mr, theirs.key)))
		*s = work_move_failed(w, MOVE_STOPPED, IBV_WC_REM_ACCESS_ERR);
	else
		*s = work_succeed(w);
	return true;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/window.h"

enum {
	WINDOW_ACCESS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED,
	NEEDS_LOCAL_WRITE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

static uint32_t key_of(const struct seg_mr *s)
{
	return atomic_load_explicit(&s->key, memory_order_acquire);
}

/* Nobody finds it from here on; who has found it looks at the key once more (hca/exec/resolve.c).
 */
static void unbind(struct seg_mr *mw)
{
	atomic_store_explicit(&mw->key, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

/* ---- bind ---- */

static bool may_rebind(const struct seg_mr *mw, const struct work *w)
{
	uint32_t old = (uint32_t)w->bind, key = key_of(mw);

	if (!(mw->flags & MR_WINDOW) || mw->pd != w->req->pd)
		return false;
	if (w->rkey >> KEY_VARIANT_BITS != old >> KEY_VARIANT_BITS)
		return false;
	if (!(mw->flags & MR_WINDOW_QP))
		return true;
	/* Bound already: only by this request, whose executor died after it. */
	return w->range_len && (!key || (key == w->rkey && mw->qpn == w->req->qpn));
}

static bool region_allows(const struct seg_mr *mr, const struct work *w, unsigned access)
{
	uint64_t off = w->raddr - mr->iova;

	if (!w->imm || key_of(mr) != w->imm || mr->flags & (MR_WINDOW | MR_NULL | MR_EXPORT) ||
		mr->pd != w->req->pd)
		return false;
	if (!(mr->access & IBV_ACCESS_MW_BIND) || access & ~(unsigned)WINDOW_ACCESS)
		return false;
	if (access & NEEDS_LOCAL_WRITE && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	return w->raddr >= mr->iova && off <= mr->length && w->range_len <= mr->length - off;
}

bool window_bind(const struct work *w)
{
	struct seg_mr *mw = seg_mr_of(w->req->view.seg, (uint32_t)w->bind);
	const struct seg_mr *mr = seg_mr_of(w->req->view.seg, w->imm);
	unsigned access = w->bind >> 32;

	if (!may_rebind(mw, w))
		return false;
	if (w->range_len && !region_allows(mr, w, access))
		return false;
	unbind(mw);
	if (!w->range_len)
		return true;
	mw->access = access;
	mw->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : w->raddr;
	mw->length = w->range_len;
	mw->addr = mr->addr + (w->raddr - mr->iova);
	mw->under = w->imm;
	mw->qpn = w->req->qpn;
	atomic_store_explicit(&mw->key, w->rkey, memory_order_release);
	return true;
}

/* ---- invalidate ---- */

static bool invalidate(struct seg_mr *mw, uint32_t key, uint32_t by_qpn, uint32_t pos)
{
	if (!key || key_of(mw) != key)
		return mw->inv_qpn == by_qpn && mw->inv_pos == pos + 1;
	mw->inv_qpn = by_qpn;
	mw->inv_pos = pos + 1;
	atomic_thread_fence(memory_order_release);
	unbind(mw);
	return true;
}

bool window_invalidate(const struct end *e, uint32_t key, uint32_t by_qpn, uint32_t pos)
{
	struct seg_mr *mw = seg_mr_of(e->view.seg, key);

	return mw->flags & MR_WINDOW_QP && mw->pd == e->pd && invalidate(mw, key, by_qpn, pos);
}

bool window_invalidate_remote(const struct end *e, uint32_t key, uint32_t by_qpn, uint32_t pos)
{
	return seg_mr_of(e->view.seg, key)->qpn == e->qpn && window_invalidate(e, key, by_qpn, pos);
}

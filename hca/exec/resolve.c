// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/resolve.h"

#include "hca/exec/view_backing.h"

/* What a window says of pages, its region says. */
static uint32_t share_of(const struct seg_mr *mr)
{
	if (mr->flags & MR_WINDOW)
		return HELD_NO_PAGES;
	return atomic_load_explicit(&mr->share, memory_order_acquire);
}

static void hold(struct held *h, struct seg_mr *mr, uint32_t key)
{
	uint32_t share = share_of(mr);

	h->mr[h->n].mr = mr;
	h->mr[h->n].share = share;
	h->what |= (share == MR_BUSY) * HELD_CHANGES;
	h->mr[h->n++].key = key;
}

/* Memory that is not simply there; *at: where it is.  False: an lkey does not stand for it. */
static __attribute__((noinline)) bool local_special(
	const struct seg_mr *mr, unsigned need, uint64_t *at, struct held *h)
{
	if (mr->flags & MR_WINDOW)
		return false;
	if (mr->flags & MR_NULL)
		*at = need & IBV_ACCESS_LOCAL_WRITE ? mr->sink : mr->addr;
	if (mr->flags & MR_OWNED)
		h->what |= HELD_OWNED;
	return true;
}

static bool resolve_local(const struct view *v, uint32_t pd, uint32_t lkey, uint64_t addr,
	uint64_t len, unsigned need, struct sgl *l, struct held *h)
{
	struct seg_mr *mr = seg_mr_of(v->seg, lkey);
	uint64_t off, at;

	if (!mr_has_key(mr, lkey) || !mr_covers(mr, pd, addr, len, need, &off))
		return false;
	at = mr->addr + off;
	if (__builtin_expect(mr->flags & (MR_WINDOW | MR_NULL | MR_OWNED), 0) &&
		!local_special(mr, need, &at, h))
		return false;
	sgl_add(l, at, len);
	hold(h, mr, lkey);
	return true;
}

/* The further conditions of a window: its region, its QP, and that nobody changed it meanwhile. */
static bool window_holds(const struct end *e, const struct seg_mr *mr, uint32_t key, struct held *h)
{
	uint32_t under = mr->under;

	if (mr->flags & MR_WINDOW_QP && mr->qpn != e->qpn)
		return false;
	if (!mr_has_key(seg_mr_of(e->view.seg, under), under))
		return false;
	hold(h, seg_mr_of(e->view.seg, under), under);
	if (seg_mr_of(e->view.seg, under)->flags & MR_OWNED)
		h->what |= HELD_OWNED;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&mr->key, memory_order_relaxed) == key;
}

/* Memory that is not simply there, and was noted: does an rkey stand for it? */
static __attribute__((noinline)) bool remote_special(
	const struct end *e, const struct seg_mr *mr, uint32_t key, struct held *h)
{
	if (mr->flags & MR_OWNED) {
		h->what |= HELD_OWNED;
		return true;
	}
	return mr->flags & MR_WINDOW && window_holds(e, mr, key, h);
}

bool resolve_remote(const struct end *e, uint32_t rkey, uint64_t addr, uint64_t len, unsigned need,
	struct sgl *l, struct held *h)
{
	struct seg_mr *mr = seg_mr_of(e->view.seg, rkey);
	uint64_t off;

	if (!mr_has_key(mr, rkey) || !mr_covers(mr, e->pd, addr, len, need, &off))
		return false;
	sgl_add(l, mr->addr + off, len);
	hold(h, mr, rkey);
	if (__builtin_expect(!(mr->flags & (MR_WINDOW | MR_NULL | MR_OWNED)), 1))
		return true;
	return remote_special(e, mr, rkey, h);
}

bool resolve_whole(const struct end *e, uint32_t rkey, unsigned need, struct sgl *l, struct held *h)
{
	const struct seg_mr *mr = seg_mr_of(e->view.seg, rkey);
	uint64_t iova = mr->iova, len = mr->length;

	/* If the entry changed meanwhile, these do not lie within what it has become, or do. */
	return len && resolve_remote(e, rkey, iova, len, need, l, h);
}

bool resolve_access(const struct view *v, uint32_t rkey, unsigned *access)
{
	const struct seg_mr *mr = seg_mr_of(v->seg, rkey);

	if (!mr_has_key(mr, rkey) || mr->flags & (MR_NULL | MR_EXPORT))
		return false;
	*access = mr->access;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&mr->key, memory_order_relaxed) == rkey;
}

bool resolve_sges(const struct view *v, uint32_t pd, const struct seg_sge *sge, unsigned n,
	uint64_t want, unsigned need, struct sgl *l, struct held *h)
{
	for (unsigned i = 0; i < n && want; i++) {
		uint64_t len = sge[i].length;

		if (!len)
			continue;
		if (len > want)
			len = want;
		if (!resolve_local(v, pd, sge[i].lkey, sge[i].addr, len, need, l, h))
			return false;
		want -= len;
	}
	return !want;
}

enum held_state held_check(const struct held *h)
{
	enum held_state state = HELD_VALID;

	for (unsigned i = 0; i < h->n; i++) {
		struct seg_mr *mr = h->mr[i].mr;

		if (atomic_load_explicit(&mr->key, memory_order_acquire) != h->mr[i].key)
			return HELD_GONE;
		if (h->mr[i].share != HELD_NO_PAGES &&
			atomic_load_explicit(&mr->share, memory_order_acquire) != h->mr[i].share)
			state = HELD_BUSY;
	}
	return state;
}

/* Appends where a piece in the arena is mapped here, cut at the ends of windows. */
static bool add_mapped(struct arena *a, struct sgl *l, uint64_t addr, uint64_t len)
{
	while (len) {
		uint64_t step = ARENA_WINDOW - addr % ARENA_WINDOW;
		void *here;

		step = step < len ? step : len;
		here = a && l->n < SGL_MAX ? arena_at(a, addr, step) : NULL;
		if (!here)
			return false;
		sgl_add(l, (uintptr_t)here, step);
		addr += step;
		len -= step;
	}
	return true;
}

/* The same for a piece in a backing. */
static bool add_backed(
	const struct view *v, const struct seg_mr *mr, struct sgl *l, uint64_t addr, uint64_t len)
{
	uint64_t offset = mr->offset + (addr - mr->addr);
	uint32_t id = mr->backing;

	while (len) {
		uint64_t step = BACKING_WINDOW - offset % BACKING_WINDOW;
		void *here;

		step = step < len ? step : len;
		if (!v->backings || !id || l->n == SGL_MAX)
			return false;
		here = backing_at(v->backings, id, offset, step);
		if (!here)
			here = view_backing_reach(v, id, offset, step);
		if (!here)
			return false;
		sgl_add(l, (uintptr_t)here, step);
		offset += step;
		len -= step;
	}
	return true;
}

static bool add_piece(
	const struct view *v, const struct held_mr *under, struct sgl *l, const struct iovec *piece)
{
	uint64_t addr = (uintptr_t)piece->iov_base;

	if (under->share == MR_MAPPED)
		return add_mapped(v->arena, l, addr + under->mr->shift, piece->iov_len);
	return under->share == MR_BACKED && add_backed(v, under->mr, l, addr, piece->iov_len);
}

bool resolve_mapped(const struct view *v, const struct held *h, unsigned first, struct sgl *l)
{
	struct sgl here;

	for (unsigned i = first; i < h->n; i++)
		if (!share_is_mapped(h->mr[i].share) && h->mr[i].share != HELD_NO_PAGES)
			return false;
	if (first == h->n)
		return false;
	sgl_reset(&here);
	for (unsigned i = 0; i < l->n; i++, first++) {
		while (first < h->n && h->mr[first].share == HELD_NO_PAGES)
			first++;
		if (first == h->n || !add_piece(v, &h->mr[first], &here, &l->v[i]))
			return false;
	}
	l->n = here.n;
	memcpy(l->v, here.v, here.n * sizeof *l->v);
	return true;
}

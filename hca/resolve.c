// SPDX-License-Identifier: BSD-3-Clause
#include "hca/resolve.h"

enum { KEY_VARIANT_BITS = 8 };

bool resolve(const struct view *v, uint32_t pd, uint32_t key, uint64_t addr, uint64_t len,
	unsigned need, struct sgl *l, struct held *h)
{
	struct seg_mr *mr = &v->seg->mr[key >> KEY_VARIANT_BITS & (SEG_MRS - 1)];
	uint64_t off;

	if (!key || atomic_load_explicit(&mr->key, memory_order_acquire) != key)
		return false;
	off = addr - mr->iova;
	if (mr->pd != pd || (mr->access & need) != need)
		return false;
	if (addr < mr->iova || off > mr->length || len > mr->length - off)
		return false;
	sgl_add(l, mr->addr + off, len);
	h->mr[h->n].mr = mr;
	h->mr[h->n].share = atomic_load_explicit(&mr->share, memory_order_acquire);
	h->busy |= h->mr[h->n].share == MR_BUSY;
	h->mr[h->n++].key = key;
	return true;
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
		if (!resolve(v, pd, sge[i].lkey, sge[i].addr, len, need, l, h))
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
		if (atomic_load_explicit(&mr->share, memory_order_acquire) != h->mr[i].share)
			state = HELD_BUSY;
	}
	return state;
}

/* Appends where a piece is mapped here, cut at the ends of windows. */
static bool add_mapped(struct arena *a, struct sgl *l, uint64_t addr, uint64_t len)
{
	while (len) {
		uint64_t step = ARENA_WINDOW - addr % ARENA_WINDOW;
		void *here;

		step = step < len ? step : len;
		here = l->n < SGL_MAX ? arena_at(a, addr, step) : NULL;
		if (!here)
			return false;
		sgl_add(l, (uintptr_t)here, step);
		addr += step;
		len -= step;
	}
	return true;
}

bool resolve_mapped(const struct view *v, const struct held *h, unsigned first, struct sgl *l)
{
	struct sgl here;

	for (unsigned i = first; i < h->n; i++)
		if (h->mr[i].share != MR_MAPPED)
			return false;
	if (!v->arena || first == h->n)
		return false;
	sgl_reset(&here);
	for (unsigned i = 0; i < l->n; i++)
		if (!add_mapped(v->arena, &here, (uintptr_t)l->v[i].iov_base, l->v[i].iov_len))
			return false;
	l->n = here.n;
	memcpy(l->v, here.v, here.n * sizeof *l->v);
	return true;
}

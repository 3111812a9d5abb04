// SPDX-License-Identifier: BSD-3-Clause
#include "hca/resolve.h"

enum { KEY_VARIANT_BITS = 8 };

bool resolve(const struct view *v, uint32_t pd, uint32_t key, uint64_t addr, uint64_t len,
	unsigned need, struct sgl *l, struct held *h)
{
	const struct seg_mr *mr = &v->seg->mr[key >> KEY_VARIANT_BITS & (SEG_MRS - 1)];
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

bool held_valid(const struct held *h)
{
	for (unsigned i = 0; i < h->n; i++)
		if (atomic_load_explicit(&h->mr[i].mr->key, memory_order_acquire) != h->mr[i].key)
			return false;
	return true;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* From keys and addresses of work requests to memory of a process, with an HCA's checks. */
#pragma once

#include "hca/seg/view.h"
#include "pages/iov.h"

enum { HELD_MAX = 72 };

/* A window, which says nothing of pages: the region under it, which is held next, does. */
#define HELD_NO_PAGES UINT32_MAX

enum held_what {
	HELD_CHANGES = 1 << 0, /* a region is changing over: nothing may be moved now */
	HELD_OWNED = 1 << 1,   /* a region is MR_OWNED */
};

/* The regions that a transfer relies on, so that it can see whether they still hold. */
struct held {
	unsigned n;
	unsigned what; /* enum held_what, of any of them */
	struct held_mr {
		struct seg_mr *mr;
		uint32_t key;
		uint32_t share; /* enum mr_share, as it was found, or HELD_NO_PAGES */
	} mr[HELD_MAX];
};

static inline void held_reset(struct held *h)
{
	h->n = 0;
	h->what = 0;
}

/* Has a region of held->mr[first] and on one of these flags (enum seg_mr_flags)? */
static inline bool held_flagged(const struct held *h, unsigned first, uint32_t flags)
{
	for (unsigned i = first; i < h->n; i++)
		if (h->mr[i].mr->flags & flags)
			return true;
	return false;
}

/* Is memory in that state reached by loads and stores? */
static inline bool share_is_mapped(uint32_t share)
{
	return share == MR_MAPPED || share == MR_BACKED;
}

static inline bool mr_has_key(const struct seg_mr *mr, uint32_t key)
{
	return key && atomic_load_explicit(&mr->key, memory_order_acquire) == key;
}

/* Whether the region, whose key was checked, allows all this; *off: where in it. */
static inline bool mr_covers(const struct seg_mr *mr, uint32_t pd, uint64_t addr, uint64_t len,
	unsigned need, uint64_t *off)
{
	*off = addr - mr->iova;
	return mr->pd == pd && (mr->access & need) == need && addr >= mr->iova &&
	       *off <= mr->length && len <= mr->length - *off;
}

/* For the owner, who learns whether mapping the region paid.  No write once it did. */
static inline void mr_note_use(struct seg_mr *mr)
{
	uint32_t ops = atomic_load_explicit(&mr->ops, memory_order_relaxed);

	if (ops < MR_OPS_ENOUGH)
		atomic_store_explicit(&mr->ops, ops + 1, memory_order_relaxed);
}

/*
 * Where in v's process the first len bytes of one SGE are, under its lkey: the common case of
 * resolve_sges(), for bytes that no mover will carry.  NULL: refused, or not that simple.
 */
static inline void *resolve_plain(
	const struct view *v, uint32_t pd, const struct seg_sge *s, uint64_t len, unsigned need)
{
	const struct seg_mr *mr = seg_mr_of(v->seg, s->lkey);
	uint64_t off;

	if (len > s->length || !mr_has_key(mr, s->lkey) ||
		!mr_covers(mr, pd, s->addr, len, need, &off) || mr->flags)
		return NULL;
	return (void *)(uintptr_t)(mr->addr + off);
}

/*
 * Translates [addr, addr+len) under an rkey of e's process, for a request that came to e, where
 * every right of need (enum ibv_access_flags) is required, to memory of that process, appended
 * to l.  False if an HCA would refuse.  len is not 0.
 */
bool resolve_remote(const struct end *e, uint32_t rkey, uint64_t addr, uint64_t len, unsigned need,
	struct sgl *l, struct held *h);

/* The same for all that the rkey stands for. */
bool resolve_whole(
	const struct end *e, uint32_t rkey, unsigned need, struct sgl *l, struct held *h);

/*
 * The same under lkeys of protection domain pd of v's process, for the first want bytes of a list
 * of SGEs; a zero length SGE needs no key.  False also if the list is shorter than want.
 */
bool resolve_sges(const struct view *v, uint32_t pd, const struct seg_sge *sge, unsigned n,
	uint64_t want, unsigned need, struct sgl *l, struct held *h);

/* The rights that an rkey of v's process gives; false: it names nothing. */
bool resolve_access(const struct view *v, uint32_t rkey, unsigned *access);

enum held_state {
	HELD_VALID,
	HELD_BUSY, /* a region is reached in another way now, or soon: begin again later */
	HELD_GONE, /* a region was invalidated */
};

/* Do the regions still hold? */
enum held_state held_check(const struct held *h);

/*
 * Makes l, memory of v's process under the regions h->mr[first..], piece by piece, a list of this
 * process's addresses, if all of it is mapped and fits.  False: l is as it was.
 */
bool resolve_mapped(const struct view *v, const struct held *h, unsigned first, struct sgl *l);

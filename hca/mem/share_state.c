// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_state.h"

#include "hca/mem/place.h"
#include "hca/mem/share_backing.h"
#include "hca/proc/proc.h"

struct share_state share;

struct seg_mr *share_entry(const struct hca_mr *mr)
{
	return &proc_seg()->mr[mr->index];
}

void share_count(enum share_reason why)
{
	atomic_fetch_add_explicit(&proc_seg()->hdr.not_mapped[why], 1, memory_order_relaxed);
}

void share_leave_behind(void)
{
	place_leave_behind();
	share_count(SHARE_LEFT_BEHIND);
}

void share_set_state(const struct hca_mr *mr, enum mr_share state)
{
	atomic_store_explicit(&share_entry(mr)->share, state, memory_order_seq_cst);
}

void share_set_mapped(struct hca_mr *mr, bool mapped)
{
	struct seg_header *hdr = &proc_seg()->hdr;

	mr->mapped = mapped;
	atomic_fetch_add_explicit(&hdr->n_mapped, mapped ? 1 : -1, memory_order_relaxed);
}

void share_set_backed(struct hca_mr *mr, bool backed)
{
	struct seg_header *hdr = &proc_seg()->hdr;
	uint64_t bytes = mr->hi - mr->lo;

	atomic_fetch_add_explicit(&hdr->n_mapped, backed ? 1 : -1, memory_order_relaxed);
	atomic_fetch_add_explicit(
		&hdr->backed_bytes, backed ? bytes : -bytes, memory_order_relaxed);
	if (!backed)
		share_backing_drop(mr);
}

bool share_by_loads(const struct hca_mr *mr)
{
	return mr->mapped || mr->backing;
}

enum mr_share share_state_of(const struct hca_mr *mr)
{
	return mr->mapped ? MR_MAPPED : mr->backing ? MR_BACKED : MR_COPY;
}

/* ---- ranges that no mapped region covers ---- */

struct gaps {
	uint64_t at, hi, bytes;
	void (*fn)(uint64_t lo, uint64_t hi, void *arg);
	void *arg;
};

static void gap(struct gaps *g, uint64_t to)
{
	g->bytes += to - g->at;
	if (g->fn)
		g->fn(g->at, to, g->arg);
}

static bool over_mapped(struct hca_mr *mr, void *arg)
{
	struct gaps *g = arg;

	if (!mr->mapped)
		return true;
	if (mr->lo > g->at)
		gap(g, mr->lo);
	if (mr->hi > g->at)
		g->at = mr->hi;
	return g->at < g->hi;
}

uint64_t share_each_gap(
	uint64_t lo, uint64_t hi, void (*fn)(uint64_t lo, uint64_t hi, void *arg), void *arg)
{
	struct gaps g = {.at = lo, .hi = hi, .fn = fn, .arg = arg};

	mr_set_each(&share.set, lo, hi, over_mapped, &g);
	if (g.at < hi)
		gap(&g, hi);
	return g.bytes;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_policy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "hca/mem/place.h"
#include "hca/proc/proc.h"
#include "pages/vma.h"

enum {
	/* Windows can give the right to atomics that the region does not. */
	ATOMIC_RIGHTS = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
	REMOTE_RIGHTS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	UNUSED_MAX = 8
};
/* Mapped memory is really there, all of it: there must be a limit in any mode. */
static const struct share_limit {
	uint64_t region, process;
} limits[] = {
	[SHARE_AUTO] = {64ull << 20, 256ull << 20},
	[SHARE_ALWAYS] = {1ull << 30, 4ull << 30},
};
/* Of exports: a part of the machine's memory, if that is more. */
enum { EXPORTS_SHARE = 2 };

enum share_mode share_mode_wanted(void)
{
	const char *text = secure_getenv("WEFT_SHARE");

	if (!text || !*text || strcmp(text, "auto") == 0)
		return SHARE_AUTO;
	if (strcmp(text, "always") == 0)
		return SHARE_ALWAYS;
	if (strcmp(text, "never"))
		log_line(LOG_LVL_WARN,
			"WEFT_SHARE=%.40s is none of auto, always, never; it counts as never",
			text);
	return SHARE_NEVER;
}

/* Of two regions that share bytes: would atomics on them be served in two ways? */
struct mix {
	const struct hca_mr *mr;
	bool mapped; /* look for such that are, or for such that are not */
	struct hca_mr *found;
};

static bool find_mix(struct hca_mr *other, void *arg)
{
	struct mix *m = arg;

	uint64_t ours = m->mr->addr + m->mr->shift, theirs = other->addr + other->shift;

	/* What others map as memory stays mapped. */
	if (other == m->mr || share_by_loads(other) != m->mapped ||
		(m->mapped && other->exported) || !(other->access & ATOMIC_RIGHTS) ||
		theirs >= ours + m->mr->length || ours >= theirs + other->length)
		return true;
	m->found = other;
	return false;
}

struct hca_mr *share_mixed(const struct hca_mr *mr, bool mapped)
{
	struct mix m = {.mr = mr, .mapped = mapped};

	if (mr->access & ATOMIC_RIGHTS)
		mr_set_each(&share.set, mr->lo, mr->hi, find_mix, &m);
	return m.found;
}

bool share_is_eager(const struct hca_mr *mr)
{
	return mr->exported || share.mode == SHARE_ALWAYS;
}

bool share_is_on_demand(const struct hca_mr *mr)
{
	return mr->kind->wanders;
}

enum share_reason share_fit(const struct hca_mr *mr)
{
	if (!(mr->access & REMOTE_RIGHTS))
		return SHARE_NO_REMOTE;
	if (share_is_on_demand(mr))
		return SHARE_ON_DEMAND;
	if (share_entry(mr)->flags & MR_JOURNALED)
		return SHARE_JOURNALED;
	if (mr->access & ATOMIC_RIGHTS && (mr->addr - mr->iova) % sizeof(uint64_t))
		return SHARE_UNALIGNED;
	return share_mixed(mr, false) ? SHARE_MIXED_ATOMICS : SHARE_MAPPED;
}

/* Of this machine's memory, so much for exports: asked for once. */
static uint64_t exports_part(void)
{
	static _Atomic uint64_t known;
	uint64_t part = atomic_load_explicit(&known, memory_order_relaxed);

	if (!part) {
		part = sysconf(_SC_PHYS_PAGES) * (uint64_t)PAGE_BYTES / EXPORTS_SHARE;
		atomic_store_explicit(&known, part, memory_order_relaxed);
	}
	return part;
}

/*
 * How much may be moved at once, and in all.  Memory for a program is wanted by somebody, who would
 * otherwise do without.
 */
static struct share_limit limit_of(const struct hca_mr *mr)
{
	struct share_limit l = limits[share_is_eager(mr) ? SHARE_ALWAYS : SHARE_AUTO];

	if (!mr->exported)
		return l;
	if (exports_part() > l.process)
		l.process = exports_part();
	l.region = l.process;
	return l;
}

enum share_reason share_wanted(const struct hca_mr *mr)
{
	struct share_limit limit = limit_of(mr);
	uint64_t bytes = atomic_load_explicit(&proc_seg()->hdr.mapped_bytes, memory_order_relaxed);

	if (mr->second) /* its pages are there already, whatever becomes of this region */
		return SHARE_MAPPED;
	if (mr->hi - mr->lo > limit.region)
		return SHARE_TOO_LARGE;
	if (bytes + share_each_gap(mr->lo, mr->hi, NULL, NULL) > limit.process)
		return SHARE_BUDGET;
	if (!share_is_eager(mr) && share.unused >= UNUSED_MAX)
		return SHARE_UNUSED;
	return place_covers(mr->lo, mr->hi) ? SHARE_QUARANTINE : SHARE_MAPPED;
}

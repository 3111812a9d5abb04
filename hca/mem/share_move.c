// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_move.h"

#include "base/clock.h"
#include "hca/mem/share_backing.h"
#include "hca/mem/share_policy.h"
#include "hca/mem/share_range.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"

#define PATIENCE_NS (100 * (uint64_t)NSEC_PER_MSEC)

static bool make_busy(struct hca_mr *mr, void *arg)
{
	*(bool *)arg = true;
	share_set_state(mr, MR_BUSY);
	return true;
}

static bool make_ready(struct hca_mr *mr, void *arg)
{
	(void)arg;
	share_set_state(mr, share_state_of(mr));
	return true;
}

bool share_change_begin(uint64_t lo, uint64_t hi, bool mapped)
{
	bool any = false;

	mr_set_each(&share.set, lo, hi, make_busy, &any);
	return !any || quiesce_within(PATIENCE_NS, !mapped);
}

void share_change_end(uint64_t lo, uint64_t hi)
{
	mr_set_each(&share.set, lo, hi, make_ready, NULL);
}

void share_back(uint64_t lo, uint64_t hi, void *arg)
{
	if (range_back(lo, hi, false))
		return;
	share_leave_behind();
	if (arg)
		*(bool *)arg = false;
}

bool share_pages_back(const struct hca_mr *mr, bool *all)
{
	uint64_t bytes = share_each_gap(mr->lo, mr->hi, NULL, NULL);
	bool alone;

	*all = bytes == mr->hi - mr->lo;
	if (!bytes)
		return true;
	alone = share_change_begin(mr->lo, mr->hi, false);
	if (alone) {
		share_each_gap(mr->lo, mr->hi, share_back, all);
	} else {
		share_leave_behind();
		*all = false;
	}
	share_change_end(mr->lo, mr->hi);
	atomic_fetch_sub_explicit(&proc_seg()->hdr.mapped_bytes, bytes, memory_order_relaxed);
	return alone;
}

/* Does a mapped region, or an export, reach pages there? */
static bool claimed(uint64_t lo, uint64_t hi)
{
	return share_each_gap(lo, hi, NULL, NULL) < hi - lo;
}

/* Moves what is planned, with nobody in the way. */
static enum share_reason convert(const struct hca_mr *mr, const struct range_plan *p)
{
	enum share_reason why = SHARE_PEER_STOPPED;

	if (!p->n)
		return SHARE_MAPPED;
	if (share_change_begin(mr->lo, mr->hi, false))
		why = range_there(p, share_is_eager(mr),
			mr->lo == mr->addr && mr->hi == mr->addr + mr->length);
	share_change_end(mr->lo, mr->hi);
	if (why == SHARE_MAPPED)
		atomic_fetch_add_explicit(&proc_seg()->hdr.conversions, 1, memory_order_relaxed);
	return why;
}

/* Into the arena. */
static enum share_reason move_region(struct hca_mr *mr)
{
	enum share_reason why = share_wanted(mr);
	struct range_plan p;
	uint64_t bytes;

	if (why == SHARE_MAPPED && !mr->second)
		why = range_plan(&p, mr->lo, mr->hi, share_is_eager(mr), claimed);
	if (why == SHARE_MAPPED && !mr->second)
		why = convert(mr, &p);
	if (why != SHARE_MAPPED)
		return why;
	bytes = share_each_gap(mr->lo, mr->hi, NULL, NULL);
	atomic_fetch_add_explicit(&proc_seg()->hdr.mapped_bytes, bytes, memory_order_relaxed);
	share_set_mapped(mr, true);
	return why;
}

enum share_reason share_map_region(struct hca_mr *mr)
{
	enum share_reason why = share_fit(mr), object;

	if (why != SHARE_MAPPED && !mr->exported)
		return why;
	if (why == SHARE_MAPPED)
		why = move_region(mr);
	if (why == SHARE_MAPPED || mr->second)
		return why;
	/* Asked last: most memory is no object, and is looked at once less. */
	object = share_backing_take(mr);
	if (object == SHARE_MAPPED)
		share_set_backed(mr, true);
	return object == SHARE_REASONS ? why : object;
}

void share_unmap_region(struct hca_mr *mr)
{
	bool any, all;

	/* No peer may be left behind with a mapped word that others will update by copies. */
	make_busy(mr, &any);
	quiesce();
	if (mr->backing) {
		share_set_backed(mr, false);
	} else {
		share_set_mapped(mr, false);
		share_pages_back(mr, &all);
	}
	share_set_state(mr, MR_COPY);
}

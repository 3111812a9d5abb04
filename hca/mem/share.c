// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share.h"

#include <pthread.h>

#include "base/log.h"
#include "hca/mem/import.h"
#include "hca/mem/place.h"
#include "hca/mem/quarantine.h"
#include "hca/mem/share_backing.h"
#include "hca/mem/share_fork.h"
#include "hca/mem/share_move.h"
#include "hca/mem/share_policy.h"
#include "hca/proc/proc.h"
#include "pages/vma.h"

void share_look(void)
{
	struct place *gone = NULL;
	int cancel;

	if (!place_any())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (lock_try(&share.lock)) {
		gone = place_sweep(false);
		lock_drop(&share.lock);
	}
	place_end(gone);
	pthread_setcancelstate(cancel, NULL);
}

void share_set_mode(void)
{
	if (share.mode == SHARE_UNSET)
		share.mode = share_mode_wanted();
	if (share.mode != SHARE_NEVER)
		share_watch_fork();
	atomic_store_explicit(&proc_seg()->hdr.share_mode, share.mode, memory_order_relaxed);
}

/*
 * Which pages mr is about.  What this process maps of its own arena, beside the place of the
 * pages, is as good for peers, who need no place; so it is mapped while something else keeps the
 * pages there.
 */
static void set_pages(struct hca_mr *mr)
{
	uint64_t mask = PAGE_BYTES - 1, offset;

	mr->lo = mr->addr & ~mask;
	mr->hi = (mr->addr + mr->length + mask) & ~mask;
	if (mr->hi <= mr->lo) /* all of memory */
		mr->hi = UINT64_MAX;
	mr->shift = 0;
	mr->second = !share_is_on_demand(mr) && import_own(mr->lo, mr->hi, &offset) &&
		     !share_each_gap(offset, offset + (mr->hi - mr->lo), NULL, NULL);
	if (mr->second) {
		mr->shift = offset - mr->lo;
		mr->lo += mr->shift;
		mr->hi += mr->shift;
		share_entry(mr)->shift = mr->shift;
	}
}

void share_reg(struct hca_mr *mr)
{
	enum share_reason why;
	struct place *gone;
	struct hca_mr *other;
	int cancel;

	atomic_store_explicit(&share_entry(mr)->share, MR_COPY, memory_order_relaxed);
	atomic_store_explicit(&share_entry(mr)->ops, 0, memory_order_relaxed);
	share_look();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&share.lock);
	share_set_mode();
	gone = place_sweep(true);
	if (share.mode != SHARE_NEVER) {
		set_pages(mr);
		why = share_map_region(mr);
		if (why != SHARE_MAPPED)
			share_count(why);
		while (!share_by_loads(mr) && (other = share_mixed(mr, true))) {
			share_count(SHARE_MIXED_ATOMICS);
			share_unmap_region(other);
		}
		share_set_state(mr, share_state_of(mr));
		mr_set_add(&share.set, mr);
		mr->in_set = true;
	}
	lock_drop(&share.lock);
	place_end(gone);
	pthread_setcancelstate(cancel, NULL);
}

/* Did mapping it pay? */
static void settle(const struct hca_mr *mr)
{
	if (atomic_load_explicit(&share_entry(mr)->ops, memory_order_relaxed) < MR_OPS_ENOUGH)
		share.unused++;
	else if (share.unused)
		share.unused--;
}

/* With the lock held.  False: others may still reach what it was through the arena. */
static bool forget(struct hca_mr *mr)
{
	bool all = true;

	if (!mr->in_set)
		return true;
	mr_set_del(&share.set, mr);
	mr->in_set = false;
	if (mr->backing) {
		share_set_backed(mr, false);
	} else if (mr->mapped) {
		if (!mr->second)
			settle(mr);
		share_set_mapped(mr, false);
		share_pages_back(mr, &all);
	}
	return all;
}

void share_dereg(struct hca_mr *mr)
{
	struct place *gone;
	int cancel;

	if (!mr->in_set)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&share.lock);
	forget(mr);
	gone = place_sweep(true);
	lock_drop(&share.lock);
	place_end(gone);
	pthread_setcancelstate(cancel, NULL);
}

bool share_dereg_late(struct hca_mr *mr, struct late *late)
{
	bool place, done;
	int cancel;

	/* What the program shares by itself cannot be taken away from a late writer. */
	if (mr->backing)
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&share.lock);
	place = mr->mapped;
	done = quarantine_room(place ? mr->hi - mr->lo : 0);
	done = forget(mr) && done && quarantine_add(mr, late, place);
	lock_drop(&share.lock);
	if (done && place)
		log_line(LOG_LVL_INFO,
			"a peer stands still while it uses memory that was deregistered, "
			"%#llx+%#llx; that is mapped by nobody until it goes on",
			(unsigned long long)mr->addr, (unsigned long long)mr->length);
	pthread_setcancelstate(cancel, NULL);
	return done;
}

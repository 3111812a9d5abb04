// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_fork.h"

#include <pthread.h>

#include "hca/mem/place.h"
#include "hca/mem/share_backing.h"
#include "hca/mem/share_child.h"
#include "hca/mem/share_move.h"
#include "hca/mem/share_range.h"
#include "hca/proc/proc.h"
#include "pages/convert.h"

static bool note_mapped(struct hca_mr *mr, void *arg)
{
	/* What others map stays where it is; the child makes a copy. */
	mr->remap = mr->mapped && !mr->exported && !mr->second;
	share.child_copies |= mr->mapped && !mr->remap;
	*(bool *)arg |= mr->remap;
	return true;
}

static bool set_copied(struct hca_mr *mr, void *arg)
{
	(void)arg;
	if (mr->remap)
		share_set_mapped(mr, false);
	return true;
}

static void back_for_fork(uint64_t lo, uint64_t hi, void *arg)
{
	(void)arg;
	if (!range_back(lo, hi, true))
		share_leave_behind();
}

/* All that is mapped. */
static uint64_t bytes_mapped(void)
{
	return UINT64_MAX - share_each_gap(0, UINT64_MAX, NULL, NULL);
}

static bool range_of_one(struct hca_mr *mr, void *arg)
{
	(void)arg;
	if (mr->remap)
		share_each_gap(mr->lo, mr->hi, back_for_fork, NULL);
	return true;
}

static void take_back(void)
{
	/* What a stopped peer keeps us from taking back the child copies by itself. */
	if (share_change_begin(0, UINT64_MAX, true)) {
		mr_set_each(&share.set, 0, UINT64_MAX, set_copied, NULL);
		mr_set_each(&share.set, 0, UINT64_MAX, range_of_one, NULL);
		atomic_store_explicit(
			&proc_seg()->hdr.mapped_bytes, bytes_mapped(), memory_order_relaxed);
	} else {
		share.child_copies = true;
	}
	share_change_end(0, UINT64_MAX);
}

static void before_fork(void)
{
	bool any = false;

	lock_take(&share.lock);
	share.child_copies = false;
	mr_set_each(&share.set, 0, UINT64_MAX, note_mapped, &any);
	if (any)
		take_back();
	share.child_copies |= place_stays();
	if (share.child_copies) {
		share_child_expect();
		convert_before_fork();
	}
}

static bool map_again(struct hca_mr *mr, void *arg)
{
	enum share_reason why;

	(void)arg;
	if (!mr->remap || mr->mapped)
		return true;
	why = share_map_region(mr);
	share_set_state(mr, share_state_of(mr));
	if (why != SHARE_MAPPED)
		share_count(why);
	return true;
}

static void after_fork_parent(void)
{
	share_child_await();
	if (share.set.root)
		mr_set_each(&share.set, 0, UINT64_MAX, map_again, NULL);
	lock_drop(&share.lock);
}

static void after_fork_child(void)
{
	range_forked_child(share.child_copies);
	share_child_has_copied();
	share_backing_forked_child();
	share.set.root = NULL;
	share.child_copies = false;
	share.mode = SHARE_UNSET;
	share.unused = 0;
	atomic_store_explicit(&share.lock.word, 0, memory_order_relaxed);
}

/*
 * Later than the handlers of rdv/: those that are registered last run first before a fork, and we
 * wait for peers, whose list may be held by a thread that waits for rdv's lock.
 */
void share_watch_fork(void)
{
	if (!share.fork_watched)
		pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	share.fork_watched = true;
}

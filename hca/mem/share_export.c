// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_export.h"

#include <pthread.h>

#include "hca/mem/export.h"
#include "hca/mem/import.h"
#include "hca/mem/share.h"
#include "hca/mem/share_backing.h"
#include "hca/mem/share_move.h"

/* Takes mr, an export, out of what is mapped. */
static bool withdraw(struct hca_mr *mr)
{
	bool all;

	mr_set_del(&share.set, mr);
	mr->in_set = false;
	if (mr->backing) {
		share_set_backed(mr, false);
		return true;
	}
	share_set_mapped(mr, false);
	return share_pages_back(mr, &all);
}

void share_lay_ghosts(void)
{
	struct hca_mr **at = &share.ghosts, *mr;

	while ((mr = *at)) {
		if (import_any(mr->born)) {
			at = &mr->ghost;
			continue;
		}
		*at = mr->ghost;
		if (mr->in_set)
			withdraw(mr);
		else
			share_each_gap(mr->lo, mr->hi, share_back, NULL);
		export_free(mr);
	}
}

enum share_reason share_export(struct hca_mr *mr)
{
	enum share_reason why = SHARE_NO_ARENA;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&share.lock);
	share_set_mode();
	share_lay_ghosts();
	if (share.mode != SHARE_NEVER) {
		mr->lo = mr->addr;
		mr->hi = mr->addr + mr->length;
		mr->exported = true;
		why = share_backing_take(mr);
		if (why == SHARE_MAPPED)
			share_set_backed(mr, true);
		else if (why == SHARE_REASONS)
			why = share_map_region(mr);
		if (why == SHARE_MAPPED) {
			mr_set_add(&share.set, mr);
			mr->in_set = true;
		} else {
			share_count(why);
		}
	}
	lock_drop(&share.lock);
	pthread_setcancelstate(cancel, NULL);
	return why;
}

static bool find_region(struct hca_mr *other, void *arg)
{
	if (!other->mapped || other->exported)
		return true;
	*(struct hca_mr **)arg = other;
	return false;
}

/* Regions on the same pages keep them from going back. */
static void unmap_regions(const struct hca_mr *mr)
{
	struct hca_mr *other;

	do {
		other = NULL;
		mr_set_each(&share.set, mr->lo, mr->hi, find_region, &other);
		if (other)
			share_unmap_region(other);
	} while (other);
}

bool share_unexport(struct hca_mr *mr, bool revoke)
{
	bool done = true;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&share.lock);
	if (revoke && mr->backing) { /* it was shared before, and is whoever's it is */
		done = !import_any(mr->born);
	} else if (revoke && import_any(mr->born)) {
		unmap_regions(mr);
		done = withdraw(mr);
	}
	mr->ghost = share.ghosts;
	share.ghosts = mr;
	share_lay_ghosts();
	lock_drop(&share.lock);
	pthread_setcancelstate(cancel, NULL);
	return done;
}

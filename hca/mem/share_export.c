// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_export.h"

#include <pthread.h>
#include <stddef.h>

#include "hca/mem/export.h"
#include "hca/mem/import.h"
#include "hca/mem/place.h"
#include "hca/mem/share.h"
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

/* ---- closed, but still mapped by somebody ---- */

static struct hca_mr *export_at(const struct place *p)
{
	return (struct hca_mr *)((char *)p - offsetof(struct hca_mr, place));
}

static bool over(const struct place *p)
{
	return !import_any(export_at(p)->born);
}

static void empty(struct place *p)
{
	struct hca_mr *mr = export_at(p);

	if (mr->in_set)
		withdraw(mr);
	else
		share_each_gap(mr->lo, mr->hi, share_back, NULL);
}

static void end(struct place *p)
{
	export_free(export_at(p));
}

static const struct place_kind closed = {
	.stays = true, .waits = true, .over = over, .empty = empty, .end = end};

/* Stale mappings of what was revoked would show what comes there now. */
static void close_export(struct hca_mr *mr)
{
	mr->place.lo = mr->in_set ? 0 : mr->lo;
	mr->place.hi = mr->in_set ? 0 : mr->hi;
	place_add(&mr->place, &closed);
}

/* ---- exporting ---- */

enum share_reason share_export(struct hca_mr *mr)
{
	enum share_reason why = SHARE_NO_ARENA;
	struct place *gone;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&share.lock);
	share_set_mode();
	gone = place_sweep(true);
	if (share.mode != SHARE_NEVER) {
		mr->lo = mr->addr;
		mr->hi = mr->addr + mr->length;
		mr->exported = true;
		why = share_map_region(mr);
		if (why == SHARE_MAPPED) {
			mr_set_add(&share.set, mr);
			mr->in_set = true;
		} else {
			share_count(why);
		}
	}
	lock_drop(&share.lock);
	place_end(gone);
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
	struct place *gone;
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
	close_export(mr);
	gone = place_sweep(true);
	lock_drop(&share.lock);
	place_end(gone);
	pthread_setcancelstate(cancel, NULL);
	return done;
}

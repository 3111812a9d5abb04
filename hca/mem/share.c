// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "hca/mem/export.h"
#include "hca/mem/import.h"
#include "hca/mem/mr_set.h"
#include "hca/mem/quarantine.h"
#include "hca/mem/share_backing.h"
#include "hca/mem/share_child.h"
#include "hca/mem/share_range.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"

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
#define PATIENCE_NS (100 * (uint64_t)NSEC_PER_MSEC)

static struct {
	struct lock lock;
	enum share_mode mode;
	struct mr_set set;
	uint32_t unused; /* conversions that ended with few operations, less those that paid */
	bool fork_watched;
	bool left_behind;      /* something that no region needs any more stays shared */
	bool child_copies;     /* at this fork other things do */
	struct hca_mr *ghosts; /* exports that are closed, but that somebody still maps */
} share;

static enum share_mode mode_wanted(void)
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

static struct seg_mr *entry(const struct hca_mr *mr)
{
	return &proc_seg()->mr[mr->index];
}

static void count(enum share_reason why)
{
	atomic_fetch_add_explicit(&proc_seg()->hdr.not_mapped[why], 1, memory_order_relaxed);
}

static void leave_behind(void)
{
	share.left_behind = true;
	count(SHARE_LEFT_BEHIND);
}

static void set_state(const struct hca_mr *mr, enum mr_share state)
{
	atomic_store_explicit(&entry(mr)->share, state, memory_order_seq_cst);
}

static void set_mapped(struct hca_mr *mr, bool mapped)
{
	struct seg_header *hdr = &proc_seg()->hdr;

	mr->mapped = mapped;
	atomic_fetch_add_explicit(&hdr->n_mapped, mapped ? 1 : -1, memory_order_relaxed);
}

static void set_backed(struct hca_mr *mr, bool backed)
{
	struct seg_header *hdr = &proc_seg()->hdr;
	uint64_t bytes = mr->hi - mr->lo;

	atomic_fetch_add_explicit(&hdr->n_mapped, backed ? 1 : -1, memory_order_relaxed);
	atomic_fetch_add_explicit(
		&hdr->backed_bytes, backed ? bytes : -bytes, memory_order_relaxed);
	if (!backed)
		share_backing_drop(mr);
}

/* Is it reached by loads and stores? */
static bool by_loads(const struct hca_mr *mr)
{
	return mr->mapped || mr->backing;
}

static enum mr_share state_of(const struct hca_mr *mr)
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

/* Calls fn (if any) for each part of [lo, hi) that no mapped region covers; their bytes. */
static uint64_t each_gap(
	uint64_t lo, uint64_t hi, void (*fn)(uint64_t lo, uint64_t hi, void *arg), void *arg)
{
	struct gaps g = {.at = lo, .hi = hi, .fn = fn, .arg = arg};

	mr_set_each(&share.set, lo, hi, over_mapped, &g);
	if (g.at < hi)
		gap(&g, hi);
	return g.bytes;
}

/* ---- the change-over ---- */

static bool make_busy(struct hca_mr *mr, void *arg)
{
	*(bool *)arg = true;
	set_state(mr, MR_BUSY);
	return true;
}

static bool make_ready(struct hca_mr *mr, void *arg)
{
	(void)arg;
	set_state(mr, state_of(mr));
	return true;
}

/*
 * Keeps everybody away from the regions that overlap [lo, hi), until change_end().  False: some
 * peer is stopped in the middle of using our memory.  mapped: also peers that use memory which is
 * mapped, and stays so.
 */
static bool change_begin(uint64_t lo, uint64_t hi, bool mapped)
{
	bool any = false;

	mr_set_each(&share.set, lo, hi, make_busy, &any);
	return !any || quiesce_within(PATIENCE_NS, !mapped);
}

static void change_end(uint64_t lo, uint64_t hi)
{
	mr_set_each(&share.set, lo, hi, make_ready, NULL);
}

static void back(uint64_t lo, uint64_t hi, void *arg)
{
	if (range_back(lo, hi, false))
		return;
	leave_behind();
	if (arg)
		*(bool *)arg = false;
}

/*
 * Of mr, which is not mapped any more: the pages that no other mapped region needs.  False: a
 * stopped peer is in the way, and they stay.  *all: false if some stay, for whatever reason.
 */
static bool pages_back(const struct hca_mr *mr, bool *all)
{
	uint64_t bytes = each_gap(mr->lo, mr->hi, NULL, NULL);
	bool alone;

	*all = bytes == mr->hi - mr->lo;
	if (!bytes)
		return true;
	alone = change_begin(mr->lo, mr->hi, false);
	if (alone) {
		each_gap(mr->lo, mr->hi, back, all);
	} else {
		leave_behind();
		*all = false;
	}
	change_end(mr->lo, mr->hi);
	atomic_fetch_sub_explicit(&proc_seg()->hdr.mapped_bytes, bytes, memory_order_relaxed);
	return alone;
}

/* ---- what may be mapped ---- */

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
	if (other == m->mr || by_loads(other) != m->mapped || (m->mapped && other->exported) ||
		!(other->access & ATOMIC_RIGHTS) || theirs >= ours + m->mr->length ||
		ours >= theirs + other->length)
		return true;
	m->found = other;
	return false;
}

static struct hca_mr *mixed(const struct hca_mr *mr, bool mapped)
{
	struct mix m = {.mr = mr, .mapped = mapped};

	if (mr->access & ATOMIC_RIGHTS)
		mr_set_each(&share.set, mr->lo, mr->hi, find_mix, &m);
	return m.found;
}

/*
 * Some of [lo, hi) was revoked, and stale mappings of it would show what comes there now, or a
 * stopped peer would write there.
 */
static bool quarantined(uint64_t lo, uint64_t hi)
{
	if (quarantine_covers(lo, hi))
		return true;
	for (const struct hca_mr *g = share.ghosts; g; g = g->ghost)
		if (!g->in_set && g->lo < hi && lo < g->hi)
			return true;
	return false;
}

/* As far as it goes, whatever it costs. */
static bool is_eager(const struct hca_mr *mr)
{
	return mr->exported || share.mode == SHARE_ALWAYS;
}

/* Its pages are never moved for it; but others are, which lie at the same addresses. */
static bool is_on_demand(const struct hca_mr *mr)
{
	return mr->kind->wanders;
}

/* Is it one that peers would map, wherever it lies? */
static enum share_reason fit(const struct hca_mr *mr)
{
	if (!(mr->access & REMOTE_RIGHTS))
		return SHARE_NO_REMOTE;
	if (is_on_demand(mr))
		return SHARE_ON_DEMAND;
	if (entry(mr)->flags & MR_JOURNALED)
		return SHARE_JOURNALED;
	if (mr->access & ATOMIC_RIGHTS && (mr->addr - mr->iova) % sizeof(uint64_t))
		return SHARE_UNALIGNED;
	return mixed(mr, false) ? SHARE_MIXED_ATOMICS : SHARE_MAPPED;
}

/*
 * How much may be moved at once, and in all.  Memory for a program is wanted by somebody, who would
 * otherwise do without.
 */
static struct share_limit limit_of(const struct hca_mr *mr)
{
	struct share_limit l = limits[is_eager(mr) ? SHARE_ALWAYS : SHARE_AUTO];
	uint64_t part;

	if (!mr->exported)
		return l;
	part = sysconf(_SC_PHYS_PAGES) * (uint64_t)PAGE_BYTES / EXPORTS_SHARE;
	if (part > l.process)
		l.process = part;
	l.region = l.process;
	return l;
}

/* Does moving it into the arena promise to pay? */
static enum share_reason wanted(const struct hca_mr *mr)
{
	struct share_limit limit = limit_of(mr);
	uint64_t bytes = atomic_load_explicit(&proc_seg()->hdr.mapped_bytes, memory_order_relaxed);

	if (mr->second) /* its pages are there already, whatever becomes of this region */
		return SHARE_MAPPED;
	if (mr->hi - mr->lo > limit.region)
		return SHARE_TOO_LARGE;
	if (bytes + each_gap(mr->lo, mr->hi, NULL, NULL) > limit.process)
		return SHARE_BUDGET;
	if (!is_eager(mr) && share.unused >= UNUSED_MAX)
		return SHARE_UNUSED;
	return quarantined(mr->lo, mr->hi) ? SHARE_QUARANTINE : SHARE_MAPPED;
}

/* Does a mapped region, or an export, reach pages there? */
static bool claimed(uint64_t lo, uint64_t hi)
{
	return each_gap(lo, hi, NULL, NULL) < hi - lo;
}

/* Moves what is planned, with nobody in the way. */
static enum share_reason convert(const struct hca_mr *mr, const struct range_plan *p)
{
	enum share_reason why = SHARE_PEER_STOPPED;

	if (!p->n)
		return SHARE_MAPPED;
	if (change_begin(mr->lo, mr->hi, false))
		why = range_there(
			p, is_eager(mr), mr->lo == mr->addr && mr->hi == mr->addr + mr->length);
	change_end(mr->lo, mr->hi);
	if (why == SHARE_MAPPED)
		atomic_fetch_add_explicit(&proc_seg()->hdr.conversions, 1, memory_order_relaxed);
	return why;
}

/* Into the arena. */
static enum share_reason move_region(struct hca_mr *mr)
{
	enum share_reason why = wanted(mr);
	struct range_plan p;
	uint64_t bytes;

	if (why == SHARE_MAPPED && !mr->second)
		why = range_plan(&p, mr->lo, mr->hi, is_eager(mr), claimed);
	if (why == SHARE_MAPPED && !mr->second)
		why = convert(mr, &p);
	if (why != SHARE_MAPPED)
		return why;
	bytes = each_gap(mr->lo, mr->hi, NULL, NULL);
	atomic_fetch_add_explicit(&proc_seg()->hdr.mapped_bytes, bytes, memory_order_relaxed);
	set_mapped(mr, true);
	return why;
}

/* Where it is, if the program shares it by itself; else into the arena. */
static enum share_reason map_region(struct hca_mr *mr)
{
	enum share_reason why = fit(mr);

	if (why != SHARE_MAPPED)
		return why;
	why = mr->exported || mr->second ? SHARE_REASONS : share_backing_take(mr);
	if (why == SHARE_REASONS)
		return move_region(mr);
	if (why == SHARE_MAPPED)
		set_backed(mr, true);
	return why;
}

/* Back to copying, for the sake of another region. */
static void unmap_region(struct hca_mr *mr)
{
	bool any, all;

	/* No peer may be left behind with a mapped word that others will update by copies. */
	make_busy(mr, &any);
	quiesce();
	if (mr->backing) {
		set_backed(mr, false);
	} else {
		set_mapped(mr, false);
		pages_back(mr, &all);
	}
	set_state(mr, MR_COPY);
}

/* ---- fork: what the child inherits is private, as if nothing had ever been mapped ---- */

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
		set_mapped(mr, false);
	return true;
}

static void back_for_fork(uint64_t lo, uint64_t hi, void *arg)
{
	(void)arg;
	if (!range_back(lo, hi, true))
		leave_behind();
}

/* All that is mapped. */
static uint64_t bytes_mapped(void)
{
	return UINT64_MAX - each_gap(0, UINT64_MAX, NULL, NULL);
}

static bool range_of_one(struct hca_mr *mr, void *arg)
{
	(void)arg;
	if (mr->remap)
		each_gap(mr->lo, mr->hi, back_for_fork, NULL);
	return true;
}

/* Does anything in the arena stay there, for a child to copy? */
static bool stays(void)
{
	return share.left_behind || share.child_copies || share.ghosts;
}

static void take_back(void)
{
	/* What a stopped peer keeps us from taking back the child copies by itself. */
	if (change_begin(0, UINT64_MAX, true)) {
		mr_set_each(&share.set, 0, UINT64_MAX, set_copied, NULL);
		mr_set_each(&share.set, 0, UINT64_MAX, range_of_one, NULL);
		atomic_store_explicit(
			&proc_seg()->hdr.mapped_bytes, bytes_mapped(), memory_order_relaxed);
	} else {
		share.child_copies = true;
	}
	change_end(0, UINT64_MAX);
}

static void before_fork(void)
{
	bool any = false;

	lock_take(&share.lock);
	share.child_copies = false;
	mr_set_each(&share.set, 0, UINT64_MAX, note_mapped, &any);
	if (any)
		take_back();
	if (stays())
		share_child_expect();
}

static bool map_again(struct hca_mr *mr, void *arg)
{
	enum share_reason why;

	(void)arg;
	if (!mr->remap || mr->mapped)
		return true;
	why = map_region(mr);
	set_state(mr, state_of(mr));
	if (why != SHARE_MAPPED)
		count(why);
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
	range_forked_child(stays());
	share_child_has_copied();
	share_backing_forked_child();
	share.set.root = NULL;
	share.ghosts = NULL;
	share.left_behind = share.child_copies = false;
	share.mode = SHARE_UNSET;
	share.unused = 0;
	atomic_store_explicit(&share.lock.word, 0, memory_order_relaxed);
}

/*
 * Later than the handlers of rdv/: those that are registered last run first before a fork, and we
 * wait for peers, whose list may be held by a thread that waits for rdv's lock.
 */
static void watch_fork(void)
{
	if (!share.fork_watched)
		pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	share.fork_watched = true;
}

/* ---- exports ---- */

/* Takes mr, an export, out of what is mapped. */
static bool withdraw(struct hca_mr *mr)
{
	bool all;

	mr_set_del(&share.set, mr);
	mr->in_set = false;
	if (mr->backing) {
		set_backed(mr, false);
		return true;
	}
	set_mapped(mr, false);
	return pages_back(mr, &all);
}

/* Frees the closed exports that nobody maps any more; what late writers left there goes. */
static void lay_ghosts(void)
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
			each_gap(mr->lo, mr->hi, back, NULL);
		export_free(mr);
	}
}

/* ---- quarantine ---- */

static void empty(uint64_t lo, uint64_t hi)
{
	each_gap(lo, hi, back, NULL);
}

void share_look(void)
{
	struct quarantined *over = NULL;
	int cancel;

	if (!quarantine_any())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (lock_try(&share.lock)) {
		over = quarantine_over(empty);
		lock_drop(&share.lock);
	}
	quarantine_free(over);
	pthread_setcancelstate(cancel, NULL);
}

/* ---- registering ---- */

static void set_mode(void)
{
	if (share.mode == SHARE_UNSET)
		share.mode = mode_wanted();
	if (share.mode != SHARE_NEVER)
		watch_fork();
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
	mr->second = !is_on_demand(mr) && import_own(mr->lo, mr->hi, &offset) &&
		     !each_gap(offset, offset + (mr->hi - mr->lo), NULL, NULL);
	if (mr->second) {
		mr->shift = offset - mr->lo;
		mr->lo += mr->shift;
		mr->hi += mr->shift;
		entry(mr)->shift = mr->shift;
	}
}

void share_reg(struct hca_mr *mr)
{
	enum share_reason why;
	struct hca_mr *other;
	int cancel;

	atomic_store_explicit(&entry(mr)->share, MR_COPY, memory_order_relaxed);
	atomic_store_explicit(&entry(mr)->ops, 0, memory_order_relaxed);
	share_look();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&share.lock);
	set_mode();
	lay_ghosts();
	if (share.mode != SHARE_NEVER) {
		set_pages(mr);
		why = map_region(mr);
		if (why != SHARE_MAPPED)
			count(why);
		while (!by_loads(mr) && (other = mixed(mr, true))) {
			count(SHARE_MIXED_ATOMICS);
			unmap_region(other);
		}
		set_state(mr, state_of(mr));
		mr_set_add(&share.set, mr);
		mr->in_set = true;
	}
	lock_drop(&share.lock);
	pthread_setcancelstate(cancel, NULL);
}

/* Did mapping it pay? */
static void settle(const struct hca_mr *mr)
{
	if (atomic_load_explicit(&entry(mr)->ops, memory_order_relaxed) < MR_OPS_ENOUGH)
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
		set_backed(mr, false);
	} else if (mr->mapped) {
		if (!mr->second)
			settle(mr);
		set_mapped(mr, false);
		pages_back(mr, &all);
	}
	return all;
}

void share_dereg(struct hca_mr *mr)
{
	int cancel;

	if (!mr->in_set)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&share.lock);
	forget(mr);
	lay_ghosts();
	lock_drop(&share.lock);
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

/* ---- exporting ---- */

enum share_reason share_export(struct hca_mr *mr)
{
	enum share_reason why = SHARE_NO_ARENA;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&share.lock);
	set_mode();
	lay_ghosts();
	if (share.mode != SHARE_NEVER) {
		mr->lo = mr->addr;
		mr->hi = mr->addr + mr->length;
		mr->exported = true;
		why = share_backing_take(mr);
		if (why == SHARE_MAPPED)
			set_backed(mr, true);
		else if (why == SHARE_REASONS)
			why = map_region(mr);
		if (why == SHARE_MAPPED) {
			mr_set_add(&share.set, mr);
			mr->in_set = true;
		} else {
			count(why);
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
			unmap_region(other);
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
	lay_ghosts();
	lock_drop(&share.lock);
	pthread_setcancelstate(cancel, NULL);
	return done;
}

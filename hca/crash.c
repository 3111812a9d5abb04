// SPDX-License-Identifier: BSD-3-Clause
#include "hca/crash.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "hca/proc.h"
#include "include/weft/verbs_ext.h"
#include "pages/vma.h"

/* A journal that this process has open, by whose it is; they are never closed. */
struct known {
	struct known *next;
	uint32_t attach;
	struct journal journal;
	bool usable;
};

static struct known *_Atomic known;
static _Atomic bool journaled;
static bool all_regions;

void crash_forked_child(void)
{
	/* Attach ids are the parent's; the mappings stay, and cost nothing. */
	atomic_store_explicit(&known, NULL, memory_order_relaxed);
	atomic_store_explicit(&journaled, false, memory_order_relaxed);
}

/* ---- finding a journal ---- */

static struct known *look_up(uint32_t attach)
{
	struct known *k = atomic_load_explicit(&known, memory_order_acquire);

	while (k && k->attach != attach)
		k = k->next;
	return k;
}

static struct known *open_new(const char *path, uint32_t attach)
{
	struct known *k = calloc(1, sizeof *k);
	int rc;

	if (!k)
		return NULL;
	rc = journal_open(&k->journal, path, true);
	if (rc)
		log_line(LOG_LVL_ERROR,
			"cannot open the journal %s: %s; what is written into the memory under the "
			"power-failure simulator is missing there",
			path, strerror(-rc));
	k->attach = attach;
	k->usable = !rc;
	k->next = atomic_load_explicit(&known, memory_order_relaxed);
	/* Two threads may add the same one: the later is found first, and both are right. */
	while (!atomic_compare_exchange_weak_explicit(
		&known, &k->next, k, memory_order_release, memory_order_relaxed))
		;
	return k;
}

struct journal *crash_journal(const struct view *v)
{
	struct known *k = look_up(v->attach);
	char path[SEG_JOURNAL_PATH];

	if (!k) {
		if (!atomic_load_explicit(&v->seg->hdr.has_journal, memory_order_acquire))
			return NULL;
		/* It is the peer's to write: any name, of any length. */
		memcpy(path, v->seg->hdr.journal, sizeof path);
		path[sizeof path - 1] = '\0';
		k = open_new(path, v->attach);
	}
	return k && k->usable ? &k->journal : NULL;
}

/* ---- the owner ---- */

void crash_attach(struct seg *seg)
{
	const char *path = getenv(JOURNAL_ENV), *which = getenv(CRASH_REGIONS_ENV);
	struct journal j;
	int rc;

	atomic_store_explicit(&journaled, false, memory_order_relaxed);
	if (!path || !*path)
		return;
	if (path[0] != '/' || strlen(path) >= SEG_JOURNAL_PATH) {
		log_line(LOG_LVL_ERROR,
			JOURNAL_ENV "=%.80s is no absolute path of less than %d bytes; nothing is "
				    "noted",
			path, SEG_JOURNAL_PATH);
		return;
	}
	rc = journal_open(&j, path, true);
	if (rc) {
		log_line(LOG_LVL_ERROR, "cannot open the journal %s: %s; nothing is noted", path,
			strerror(-rc));
		return;
	}
	journal_close(&j);
	all_regions = which && !strcmp(which, "all");
	strcpy(seg->hdr.journal, path);
	atomic_store_explicit(&seg->hdr.has_journal, 1, memory_order_release);
	atomic_store_explicit(&journaled, true, memory_order_release);
}

uint32_t crash_qp_access(void)
{
	return atomic_load_explicit(&journaled, memory_order_acquire) ? QPA_JOURNALED : 0;
}

/* A file that is mapped shared, as persistent memory is; not what fork shares. */
static bool is_shared_file(const struct vma *v)
{
	char name[64];

	if (!v->shared || !v->inode)
		return false;
	return vma_name(v, name, sizeof name) || strncmp(name, "/dev/zero", strlen("/dev/zero"));
}

static bool in_shared_file(uint64_t addr, uint64_t length)
{
	struct vma_walk walk;
	bool found = false;
	struct vma v;

	if (vma_walk_begin(&walk, addr))
		return false;
	while (!found && !vma_walk_next(&walk, &v) && v.start < addr + length)
		found = is_shared_file(&v);
	vma_walk_end(&walk);
	return found;
}

static bool counts(const struct hca_mr *mr)
{
	if (!(mr->access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) ||
		mr->access & IBV_ACCESS_ON_DEMAND || mr->length > UINT32_MAX)
		return false;
	if (mr->access & IBV_ACCESS_FLUSH_PERSISTENT)
		return true;
	return all_regions ? mr->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
			   : in_shared_file(mr->addr, mr->length);
}

uint32_t crash_region(const struct hca_mr *mr, uint32_t flags)
{
	struct journal_record r = {.kind = JOURNAL_REGION, .owner = getpid()};
	struct view v;
	struct journal *j;

	if (!atomic_load_explicit(&journaled, memory_order_acquire) || flags || !counts(mr))
		return 0;
	v = proc_view();
	j = crash_journal(&v);
	if (!j)
		return 0;
	r.addr = mr->addr;
	r.len = r.data_len = mr->length;
	r.data = journal_room(j, r.len);
	if (!r.data) {
		log_line(LOG_LVL_ERROR,
			"the journal has no room for the %llu bytes of a region, which is not put "
			"under the power-failure simulator; give it more (weft crash run --size)",
			(unsigned long long)r.len);
		return 0;
	}
	memcpy(journal_data(j, r.data), (const void *)(uintptr_t)r.addr, r.len);
	journal_sign(&r, r.owner);
	return journal_add(j, &r, JOURNAL_DONE) ? MR_JOURNALED : 0;
}

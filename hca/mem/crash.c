// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/crash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "include/weft/verbs_ext.h"
#include "pages/vma.h"

/* The journal that our environment names; once open, it is never closed. */
static struct journal own;
static _Atomic bool journaled; /* it is open, and our segment says so */
static bool all_regions;

void crash_forked_child(void)
{
	/* The mapping stays, for when the child attaches. */
	atomic_store_explicit(&journaled, false, memory_order_relaxed);
}

/* ---- whose journal is ours ---- */

static void tell_foreign(const struct view *v)
{
	static _Atomic uint32_t told;

	if (atomic_exchange_explicit(&told, v->attach, memory_order_relaxed) == v->attach)
		return;
	log_line(LOG_LVL_ERROR,
		"process %d is under weft crash, and what is written into its memory would be "
		"missing in its journal: run this program by weft crash run --add with the same "
		"journal",
		v->pid);
}

int crash_journal(const struct view *v, struct journal **j)
{
	bool on = atomic_load_explicit(&journaled, memory_order_acquire);
	uint64_t id;

	*j = NULL;
	if (v->pid) {
		id = atomic_load_explicit(&v->seg->hdr.journal_id, memory_order_acquire);
		if (id && (!on || id != own.id)) {
			tell_foreign(v);
			return -EXDEV;
		}
		on = id;
	}
	if (on)
		*j = &own;
	return 0;
}

/* ---- the owner ---- */

static bool open_own(const char *path)
{
	int rc = path[0] == '/' ? journal_join(&own, path) : -EINVAL;

	if (rc == -EINVAL)
		log_line(LOG_LVL_ERROR, JOURNAL_ENV "=%.80s is no absolute path; nothing is noted",
			path);
	else if (rc)
		log_line(LOG_LVL_ERROR, "cannot open the journal %.200s: %s; nothing is noted",
			path, journal_error(rc));
	return !rc;
}

void crash_attach(struct seg *seg)
{
	const char *path = secure_getenv(JOURNAL_ENV), *which = secure_getenv(CRASH_REGIONS_ENV);

	if (!path || !*path || (!own.head && !open_own(path)))
		return;
	all_regions = which && !strcmp(which, "all");
	atomic_store_explicit(&seg->hdr.journal_id, own.id, memory_order_release);
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

	if (!atomic_load_explicit(&journaled, memory_order_acquire) || flags || !counts(mr))
		return 0;
	r.addr = mr->addr;
	r.len = r.data_len = mr->length;
	r.data = journal_room(&own, r.len);
	if (!r.data) {
		log_line(LOG_LVL_ERROR,
			"the journal has no room for the %llu bytes of a region, which is not put "
			"under the power-failure simulator; give it more (weft crash run --size)",
			(unsigned long long)r.len);
		return 0;
	}
	memcpy(journal_data(&own, r.data), (const void *)(uintptr_t)r.addr, r.len);
	journal_sign(&r, r.owner);
	return journal_add(&own, &r, JOURNAL_DONE) ? MR_JOURNALED : 0;
}

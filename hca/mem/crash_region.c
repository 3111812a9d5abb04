// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/crash_region.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "hca/exec/crash_journal.h"
#include "include/weft/verbs_ext.h"
#include "pages/vma.h"

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
	const char *which = secure_getenv(CRASH_REGIONS_ENV);

	if (!(mr->access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) ||
		mr->access & IBV_ACCESS_ON_DEMAND || mr->length > UINT32_MAX)
		return false;
	if (mr->access & IBV_ACCESS_FLUSH_PERSISTENT)
		return true;
	return which && !strcmp(which, "all")
		       ? mr->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
		       : in_shared_file(mr->addr, mr->length);
}

uint32_t crash_region(const struct hca_mr *mr, uint32_t flags)
{
	struct journal_record r = {.kind = JOURNAL_REGION, .owner = getpid()};
	struct journal *own = crash_own_journal();

	if (!own || flags || !counts(mr))
		return 0;
	r.addr = mr->addr;
	r.len = r.data_len = mr->length;
	r.data = journal_room(own, r.len);
	if (!r.data) {
		log_line(LOG_LVL_ERROR,
			"the journal has no room for the %llu bytes of a region, which is not put "
			"under the power-failure simulator; give it more (weft crash run --size)",
			(unsigned long long)r.len);
		return 0;
	}
	memcpy(journal_data(own, r.data), (const void *)(uintptr_t)r.addr, r.len);
	journal_sign(&r, r.owner);
	return journal_add(own, &r, JOURNAL_DONE) ? MR_JOURNALED : 0;
}

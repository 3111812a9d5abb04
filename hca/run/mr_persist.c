// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/mr_persist.h"

#include "base/log.h"
#include "hca/proc/proc.h"
#include "hca/run/agent.h"
#include "hca/seg/seg.h"
#include "include/weft/verbs_ext.h"

enum durability persist_kind(uint64_t addr, uint64_t len, unsigned access)
{
	enum durability kind;

	if (!(access & IBV_ACCESS_FLUSH_PERSISTENT))
		return DURABLE_NEVER;
	/* What is mapped when it is used decides. */
	kind = access & IBV_ACCESS_ON_DEMAND ? DURABLE_FILE : durable_kind(addr, len);
	log_line(LOG_LVL_INFO, "%#llx+%#llx is registered for persistent flushes and is %s: %s",
		(unsigned long long)addr, (unsigned long long)len, durable_name(kind),
		kind == DURABLE_NEVER  ? "they complete, but nothing of it outlives this process"
		: kind == DURABLE_PMEM ? "they write the CPUs' caches back"
				       : "they call msync(2)");
	return kind;
}

uint32_t persist_flags(enum durability kind)
{
	return kind == DURABLE_PMEM ? MR_PMEM : kind == DURABLE_FILE ? MR_FILE : 0;
}

void persist_add(enum durability kind)
{
	atomic_fetch_add_explicit(&proc_seg()->hdr.n_durable[kind], 1, memory_order_relaxed);
	if (kind != DURABLE_NEVER)
		agent_hold();
}

void persist_remove(enum durability kind)
{
	atomic_fetch_sub_explicit(&proc_seg()->hdr.n_durable[kind], 1, memory_order_relaxed);
	if (kind != DURABLE_NEVER)
		agent_drop();
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/persist.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "hca/exec/carry.h"
#include "hca/exec/exec_agent.h"
#include "pages/durable.h"

static enum durability kind_of(const struct payload *range, const struct held *held)
{
	uint32_t flags = held->n ? held->mr[held->n - 1].mr->flags : 0;

	/* Pages that have come to lie in the arena are no file's. */
	if (flags & MR_FILE)
		return way_beneath(range)->shared ? DURABLE_NEVER : DURABLE_FILE;
	return flags & MR_PMEM ? DURABLE_PMEM : DURABLE_NEVER;
}

enum move_result persist_own(enum durability kind, uint64_t addr, uint64_t len)
{
	int rc = durable_write_back(kind, addr, len);

	if (rc == -ENOMEM)
		return MOVE_FAULT_REMOTE;
	if (rc)
		log_line(LOG_LVL_ERROR,
			"%#llx+%#llx, which a peer has flushed, cannot be made durable: %s",
			(unsigned long long)addr, (unsigned long long)len, strerror(-rc));
	return rc ? MOVE_REFUSED : MOVE_OK;
}

/* Between two steps. */
static enum move_result goes_on(struct work *w, const struct held *held)
{
	work_step(w);
	return carry_goes_on(w, held);
}

/* Memory that this process reaches by itself. */
static enum move_result write_back_here(
	struct work *w, struct sgl *l, enum durability kind, const struct held *held)
{
	while (l->left) {
		const struct iovec *v = &l->v[l->at];
		uint64_t step = v->iov_len < AGENT_PERSIST_BYTES ? v->iov_len : AGENT_PERSIST_BYTES;
		enum move_result r = persist_own(kind, (uintptr_t)v->iov_base, step);

		/* The list is the responder's memory, whoever we are. */
		if (r == MOVE_FAULT_REMOTE && (!w->req || !end_is_here(w->req)))
			r = MOVE_FAULT_LOCAL;
		if (r != MOVE_OK)
			return r;
		sgl_consume(l, step);
		r = l->left ? goes_on(w, held) : MOVE_OK;
		if (r != MOVE_OK)
			return r;
	}
	return MOVE_OK;
}

enum move_result persist_here(
	struct work *w, struct payload *range, const struct held *held, enum durability kind)
{
	if (kind != DURABLE_PMEM && !w->x->is_worker)
		return w->req ? exec_agent_lane(w) : MOVE_LATER;
	return write_back_here(w, &range->l, kind, held);
}

enum move_result persist_shared(
	struct work *w, struct payload *range, const struct held *held, enum durability kind)
{
	if (!carry_alive(w, &range->at->view))
		return MOVE_GONE;
	return write_back_here(w, &range->l, kind, held);
}

enum move_result persist_by_owner(
	struct work *w, struct payload *range, const struct held *held, enum durability kind)
{
	(void)kind;
	return exec_agent_later(w) ? exec_agent_lane(w) : exec_agent_persist(w, range, held);
}

enum move_result persist_range(struct work *w, struct payload *range, const struct held *held)
{
	enum durability kind = kind_of(range, held);
	enum move_result r = MOVE_OK;

	if (held->what & HELD_CHANGES)
		return MOVE_ANEW;
	if (!range->l.left)
		return MOVE_OK;
	if (kind != DURABLE_NEVER)
		r = way_beneath(range)->persist(w, range, held, kind);
	if (r == MOVE_OK)
		count_add(w->x, kind == DURABLE_NEVER ? CTR_PERSIST_VOLATILE : CTR_PERSIST, 1);
	return r;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/persist.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "hca/exec/carry.h"
#include "hca/exec/exec_agent.h"
#include "pages/durable.h"

static enum durability kind_of(const struct held *held)
{
	uint32_t flags = held->n ? held->mr[held->n - 1].mr->flags : 0;

	return flags & MR_FILE ? DURABLE_FILE : flags & MR_PMEM ? DURABLE_PMEM : DURABLE_NEVER;
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

/* Between two steps: may it go on? */
static bool goes_on(struct work *w, const struct held *held)
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
		if (r == MOVE_FAULT_REMOTE && !end_is_here(w->req))
			r = MOVE_FAULT_LOCAL;
		if (r != MOVE_OK)
			return r;
		sgl_consume(l, step);
		if (l->left && !goes_on(w, held))
			return MOVE_STOPPED;
	}
	return MOVE_OK;
}

/* Work of this queue pair goes to its lane from now on. */
static void want_lane(const struct work *w)
{
	const struct view *other = end_is_here(w->req) ? &w->resp->view : &w->req->view;

	if (other->pid && other->path)
		atomic_store_explicit(&other->path->blocks, 1, memory_order_relaxed);
}

/* By whom that can be here; MOVE_LATER: by nobody. */
static enum move_result write_back(
	struct work *w, struct payload *range, enum durability kind, const struct held *held)
{
	bool own = end_is_here(w->mem);

	if (kind == DURABLE_PMEM && range->here) {
		if (range->mapped && !carry_alive(w, &w->mem->view))
			return MOVE_GONE;
		return write_back_here(w, &range->l, kind, held);
	}
	if (own && w->x->is_worker)
		return write_back_here(w, &range->l, kind, held);
	if (own || exec_agent_later(w)) {
		want_lane(w);
		return MOVE_LATER;
	}
	return exec_agent_persist(w, range, held);
}

enum move_result persist_range(struct work *w, struct payload *range, const struct held *held)
{
	enum durability kind = kind_of(held);
	enum move_result r = MOVE_OK;

	if (held->busy)
		return carry_busy(w);
	if (!range->l.left)
		return MOVE_OK;
	/* Pages that have come to lie in the arena are no file's. */
	if (kind == DURABLE_FILE && range->mapped)
		kind = DURABLE_NEVER;
	if (kind != DURABLE_NEVER)
		r = write_back(w, range, kind, held);
	if (r == MOVE_OK)
		count_add(w->x, kind == DURABLE_NEVER ? CTR_PERSIST_VOLATILE : CTR_PERSIST, 1);
	return r;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/range.h"

#include "hca/exec/carry.h"
#include "hca/exec/way_table.h"

/*
 * The requester's SGEs, with the rights of need; false: an lkey does not allow it.  (Lists and held
 * are large: they are never zeroed whole on the hot path.)
 */
static bool local_range(struct work *w, unsigned need, struct payload *p, struct held *held)
{
	payload_begin(p, held);
	if (!resolve_sges(
		    &w->req->view, w->req->pd, w->sge, w->num_sge, w->length, need, &p->l, held))
		return false;
	way_of_requester(w->req, p, held);
	return true;
}

bool range_source(struct work *w, struct payload *p, struct held *held)
{
	held_reset(held);
	if (w->inline_data)
		payload_of_bytes(p, (void *)w->inline_data, w->length);
	else if (w->length && w->length <= SEG_PARK_BYTES &&
		 atomic_load_explicit(&w->req->qp->parked_copy, memory_order_acquire) == w->pos + 1)
		payload_of_bytes(p, w->req->park_buf, w->length);
	else
		return local_range(w, 0, p, held);
	return true;
}

bool range_sink(struct work *w, struct payload *p, struct held *held)
{
	held_reset(held);
	return local_range(w, IBV_ACCESS_LOCAL_WRITE, p, held);
}

bool range_remote(struct work *w, uint64_t len, unsigned need, struct payload *p, struct held *held)
{
	payload_begin(p, held);
	if ((w->resp->qp->access & need) != need)
		return false;
	if (len && !resolve_remote(w->mem, w->rkey, w->raddr, len, need, &p->l, held))
		return false;
	if (len && share_is_mapped(held->mr[held->n - 1].share))
		mr_note_use(held->mr[held->n - 1].mr);
	way_of_responder(w, p, held);
	return true;
}

void range_park_copy(struct work *w)
{
	struct held held;
	struct payload p;

	if (w->op->kind != OP_SEND || w->inline_data || !w->length || w->length > SEG_PARK_BYTES ||
		!end_is_here(w->req) || !range_source(w, &p, &held) || !p.way->here)
		return;
	sgl_gather(&p.l, w->req->park_buf);
	atomic_store_explicit(&w->req->qp->parked_copy, w->pos + 1, memory_order_release);
}

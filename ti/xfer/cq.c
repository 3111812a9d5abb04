// SPDX-License-Identifier: BSD-3-Clause
#include "ti/xfer/cq.h"

#include <stdlib.h>

#include "ti/xfer/drain.h"

enum { POLL_MAX = 256 };

/* ---- creating, destroying ---- */

static void destroy(struct object *o)
{
	struct cq *cq = (struct cq *)o;

	pd_unuse(cq->pd);
	member_end(&cq->m);
	free(cq);
}

static ti_status_t create(struct service *ti, struct pd *pd, uint32_t max, ti_cq_handle_t *ph_cq)
{
	struct cq *cq = calloc(1, sizeof *cq);
	ti_status_t st;

	if (!cq)
		return TI_INSUFFICIENT_RESOURCES;
	cq->max = max;
	cq->pd = pd;
	if (!pd_use(pd)) {
		free(cq);
		return TI_INVALID_PARAMETER;
	}
	st = service_join(ti, &cq->m, HANDLE_CQ, destroy);
	if (st) {
		pd_unuse(pd);
		free(cq);
	} else {
		*ph_cq = cq->m.obj.handle;
		object_put(&cq->m.obj);
	}
	return st;
}

ti_status_t op_create_cq(
	ti_handle_t h_ti, ti_pd_handle_t h_pd, uint32_t max_cq_entries, ti_cq_handle_t *ph_cq)
{
	struct service *ti;
	struct pd *pd;
	ti_status_t st = TI_INVALID_PARAMETER;

	if (ph_cq)
		*ph_cq = NULL;
	ti = service_get(h_ti);
	if (!ti)
		return TI_INVALID_HANDLE;
	pd = pd_get(ti, h_pd);
	if (pd && ph_cq && max_cq_entries && max_cq_entries <= CQ_MAX_ENTRIES)
		st = create(ti, pd, max_cq_entries, ph_cq);
	if (pd)
		object_put(&pd->m.obj);
	service_put(ti);
	return st;
}

bool cq_use(struct cq *cq)
{
	bool ok;

	object_relock(&cq->m.obj);
	ok = object_is_open(&cq->m.obj);
	if (ok) {
		object_hold(&cq->m.obj);
		atomic_fetch_add_explicit(&cq->users, 1, memory_order_relaxed);
	}
	object_unlock(&cq->m.obj);
	return ok;
}

void cq_unuse(struct cq *cq)
{
	atomic_fetch_sub_explicit(&cq->users, 1, memory_order_release);
}

void cq_end(struct cq *cq)
{
	uint32_t n;

	lock_take(&cq->lock);
	(void)elements_hand_out(&cq->done, &n);
	lock_drop(&cq->lock);
	object_put(&cq->m.obj);
}

ti_status_t op_destroy_cq(ti_cq_handle_t h_cq)
{
	struct cq *cq = object_lock(h_cq, HANDLE_CQ);

	if (!cq)
		return TI_INVALID_PARAMETER;
	if (atomic_load_explicit(&cq->users, memory_order_acquire)) {
		object_unlock(&cq->m.obj);
		return TI_INVALID_OPERATION;
	}
	(void)service_leave_locked(&cq->m); /* the handle is open: it is ours to close */
	cq_end(cq);
	return TI_SUCCESS;
}

/* ---- polling ---- */

/* The next connection of the queue. */
static struct conn *next_conn(const struct cq *cq, const struct conn *c)
{
	return c->next_of[c->send_cq != cq];
}

/* Drains c under cq's lock; not if somebody is at its other queue, who polls it himself. */
static void drain_under(struct cq *cq, struct conn *c)
{
	struct cq *other = c->send_cq == cq ? c->recv_cq : c->send_cq;

	if (other == cq) {
		(void)drain(c, POLL_MAX);
	} else if (lock_try(&other->lock)) {
		(void)drain(c, POLL_MAX);
		lock_drop(&other->lock);
	}
}

static void take_ready(struct cq *cq, struct conn *c, struct elements *all)
{
	for (enum xfer x = 0; x < XFERS; x++) {
		if (drain_queue(c, x) != cq)
			continue;
		elements_move(all, &c->ready[x]);
		c->wake[x] = false;
	}
}

ti_status_t op_poll_cq(ti_cq_handle_t h_cq, ti_data_element_t **p_list)
{
	struct cq *cq = object_get(h_cq, HANDLE_CQ);
	struct elements all = {0};
	uint32_t n;

	if (p_list)
		*p_list = NULL;
	if (cq && p_list) {
		lock_take(&cq->lock);
		for (struct conn *c = cq->conns; c; c = next_conn(cq, c))
			drain_under(cq, c);
		elements_move(&all, &cq->done);
		for (struct conn *c = cq->conns; c; c = next_conn(cq, c))
			take_ready(cq, c, &all);
		*p_list = elements_hand_out(&all, &n);
		cq->count -= n;
		lock_drop(&cq->lock);
	}
	if (cq)
		object_put(&cq->m.obj);
	return cq && p_list ? TI_SUCCESS : TI_INVALID_PARAMETER;
}

ti_status_t op_rearm_cq(ti_cq_handle_t h_cq)
{
	struct cq *cq = object_get(h_cq, HANDLE_CQ);

	if (!cq)
		return TI_INVALID_PARAMETER;
	lock_take(&cq->lock);
	cq->armed = true;
	for (struct conn *c = cq->conns; c; c = next_conn(cq, c))
		if (conn_calls_back(c))
			drain_arm(c);
	lock_drop(&cq->lock);
	object_put(&cq->m.obj);
	return TI_SUCCESS;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "ti/xfer/give_back.h"

#include "ti/core/fork.h"
#include "ti/mem/pool.h"
#include "ti/xfer/post.h"

/*
 * The queue for receives, which accept() or connect() or listen() named, with a reference; NULL.
 * c: NULL, the handle is stale.
 */
static struct cq *recv_queue(struct conn *c, ti_cq_handle_t h)
{
	struct cq *cq;

	if (!c)
		return object_get(h, HANDLE_CQ);
	cq = cq_get(c->m.ti, h);
	if (cq)
		return cq;
	pthread_mutex_lock(&c->lock);
	cq = c->named_recv;
	if (cq)
		object_hold(&cq->m.obj);
	pthread_mutex_unlock(&c->lock);
	return cq;
}

/* Looks at e only if it is an element of the service's; false: it is not the program's. */
static bool claim(struct service *ti, ti_data_element_t *e)
{
	struct pool *pool = pool_with(ti, e);
	bool ok = pool && element_claim((struct element *)e);

	if (pool)
		object_put(&pool->m.obj);
	return ok;
}

/* All or none: false. */
static bool claim_all(
	struct service *ti, ti_data_element_t *list, struct elements *all, uint32_t *n)
{
	ti_data_element_t *e;

	*all = (struct elements){list, NULL};
	*n = 0;
	for (e = list; e && claim(ti, e); e = e->p_next_msg) {
		all->last = e;
		++*n;
	}
	if (e)
		post_unclaim(list, *n);
	return !e;
}

/* False: nobody can poll for it any more.  A queue is closed first and emptied then. */
static bool put_in_queue(struct cq *cq, struct elements *all, uint32_t n)
{
	bool ok;

	lock_take(&cq->lock);
	ok = object_is_open(&cq->m.obj);
	if (ok) {
		elements_move(&cq->done, all);
		cq->count += n;
	}
	lock_drop(&cq->lock);
	return ok;
}

/* As those would come back that were posted.  cq: NULL, there is none. */
static void hand_back(
	struct cq *cq, const ti_comp_info_t *comp, struct elements *all, uint32_t n, ti_status_t st)
{
	ti_data_element_t *list = all->first;

	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		e->status = st;
	if (!comp->pfn_recv_cb && cq && put_in_queue(cq, all, n))
		return;
	(void)elements_hand_out(all, &n);
	if (comp->pfn_recv_cb)
		comp->pfn_recv_cb(cq ? cq->m.obj.handle : comp->h_recv_cq, list);
}

ti_status_t give_back(
	struct conn *c, const ti_comp_info_t *comp, ti_data_element_t *list, ti_status_t st)
{
	struct cq *cq = recv_queue(c, comp->h_recv_cq);
	struct service *ti = c ? c->m.ti : cq ? cq->m.ti : NULL;
	unsigned forks = fork_count();
	struct elements all;
	uint32_t n;

	if (ti && service_stay(ti)) {
		if (claim_all(ti, list, &all, &n))
			hand_back(cq, comp, &all, n, st);
		else
			st = TI_INVALID_PARAMETER;
		if (forks == fork_count())
			service_unstay(ti);
	}
	if (cq)
		object_put(&cq->m.obj);
	return st;
}

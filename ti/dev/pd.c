// SPDX-License-Identifier: BSD-3-Clause
#include "ti/dev/pd.h"

#include <stdlib.h>

#include "ti/dev/device.h"

static void destroy(struct object *o)
{
	struct pd *pd = (struct pd *)o;

	if (pd->ibpd)
		(void)ibv_dealloc_pd(pd->ibpd);
	if (pd->m.ti)
		member_end(&pd->m);
	free(pd);
}

/* The device of a local address; the first one for all of them. */
static ti_status_t open_device(struct pd *pd, const struct endpoint *ep)
{
	pd->verbs = ep->verbs ? ep->verbs : device_first();
	if (!pd->verbs || ibv_query_device(pd->verbs, &pd->limits))
		return TI_INSUFFICIENT_RESOURCES;
	pd->ibpd = ibv_alloc_pd(pd->verbs);
	return pd->ibpd ? TI_SUCCESS : TI_ERROR;
}

static ti_status_t create(struct service *ti, const struct endpoint *ep, ti_pd_handle_t *ph_pd)
{
	struct pd *pd = calloc(1, sizeof *pd);
	ti_status_t st;

	if (!pd)
		return TI_INSUFFICIENT_MEMORY;
	st = open_device(pd, ep);
	if (!st)
		st = service_join(ti, &pd->m, HANDLE_PD, destroy);
	if (!st) {
		*ph_pd = pd->m.obj.handle;
		object_put(&pd->m.obj);
		return TI_SUCCESS;
	}
	pd->m.ti = NULL;
	destroy(&pd->m.obj);
	return st;
}

ti_status_t op_create_pd(ti_handle_t h_ti, ti_endpoint_handle_t h_local_ep, ti_pd_handle_t *ph_pd)
{
	struct service *ti;
	struct endpoint *ep;
	ti_status_t st = TI_INVALID_PARAMETER;

	if (ph_pd)
		*ph_pd = NULL;
	ti = service_get(h_ti);
	if (!ti)
		return TI_INVALID_HANDLE;
	ep = endpoint_get(ti, h_local_ep);
	if (ep && ep->local && ph_pd)
		st = create(ti, ep, ph_pd);
	if (ep)
		object_put(&ep->m.obj);
	service_put(ti);
	return st;
}

bool pd_use(struct pd *pd)
{
	bool ok;

	object_relock(&pd->m.obj);
	ok = object_is_open(&pd->m.obj);
	if (ok) {
		object_hold(&pd->m.obj);
		atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	}
	object_unlock(&pd->m.obj);
	return ok;
}

void pd_unuse(struct pd *pd)
{
	atomic_fetch_sub_explicit(&pd->users, 1, memory_order_release);
	object_put(&pd->m.obj);
}

bool pd_enter(struct pd *pd, struct pd_guest *g, void (*evict)(struct pd_guest *g))
{
	if (!object_is_open(&pd->m.obj))
		return false;
	object_hold(&pd->m.obj);
	g->evict = evict;
	g->next = pd->guests;
	g->link = &pd->guests;
	if (g->next)
		g->next->link = &g->next;
	pd->guests = g;
	return true;
}

void pd_leave(struct pd *pd, struct pd_guest *g)
{
	*g->link = g->next;
	if (g->next)
		g->next->link = g->link;
	object_put(&pd->m.obj);
}

/* None comes any more: the handle is closed. */
static void evict_guests(struct pd *pd)
{
	lock_take(&pd->m.ti->guests);
	while (pd->guests)
		pd->guests->evict(pd->guests);
	lock_drop(&pd->m.ti->guests);
}

ti_status_t op_destroy_pd(ti_pd_handle_t h_pd)
{
	struct pd *pd = object_lock(h_pd, HANDLE_PD);

	if (!pd)
		return TI_INVALID_PARAMETER;
	if (atomic_load_explicit(&pd->users, memory_order_acquire)) {
		object_unlock(&pd->m.obj);
		return TI_RESOURCE_BUSY;
	}
	(void)service_leave_locked(&pd->m); /* the handle is open: it is ours to close */
	evict_guests(pd);
	object_put(&pd->m.obj);
	return TI_SUCCESS;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/route.h"

#include <errno.h>
#include <stdlib.h>

#include "hca/proc/peer.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/run/near.h"

enum { ROUTES_LOG = 8, ROUTES = 1 << ROUTES_LOG };

struct route {
	struct end e;
	struct peer *process;
};

struct routes {
	struct route *at[ROUTES];
};

struct routes *routes_new(void)
{
	return calloc(1, sizeof(struct routes));
}

static void drop(struct route **at, bool live)
{
	struct route *r = *at;

	*at = NULL;
	if (!r)
		return;
	if (live)
		peer_put(r->process);
	free(r);
}

void routes_free(struct routes *r, bool live)
{
	for (unsigned i = 0; r && i < ROUTES; i++)
		drop(&r->at[i], live);
	free(r);
}

void route_enter(struct work *w, const struct end *e)
{
	if (w->named == e->view.attach)
		return;
	w->named = e->view.attach;
	slot_step(w->x->slot, w->req->view.attach, w->named, w->way);
	if (w->req->type == IBV_QPT_UD)
		w->req->qp->peer_attach = w->named;
}

static struct route **place_of(struct routes *r, uint32_t qpn)
{
	return &r->at[qpn * 0x9e3779b1u >> (32 - ROUTES_LOG)];
}

const struct end *route_guess(struct routes *r, uint32_t qpn)
{
	const struct route *at = *place_of(r, qpn);

	return at && at->e.qpn == qpn ? &at->e : NULL;
}

/* Is the QP still the one that the route leads to? */
static bool is_fresh(const struct end *e)
{
	uint32_t s = atomic_load_explicit(&e->qp->state, memory_order_acquire);

	return s & QPS_LIVE && s >> QPS_GEN_SHIFT == end_gen(e) && !view_dead(&e->view);
}

static int lead_to(struct route *r, uint32_t index)
{
	int rc;

	if (!peer_greet(r->process))
		return -EUSERS;
	rc = end_init(&r->e, &r->process->view, index);
	if (!rc && near_prepare_channels(r->process, &r->e))
		rc = -EAGAIN;
	return rc;
}

/* Our slot names nobody else meanwhile: weftd may let us wait. */
static void name_nobody(struct work *w)
{
	w->named = w->req->view.attach;
	slot_step(w->x->slot, w->req->view.attach, w->named, w->way);
}

bool route_elsewhere(struct work *w, uint32_t qpn)
{
	name_nobody(w);
	return peer_elsewhere(qpn);
}

/* A new route. */
static int look_up(struct work *w, uint32_t qpn, struct route **out)
{
	struct route *r = malloc(sizeof *r);
	uint32_t index;
	int rc = r ? 0 : -ENOMEM;

	name_nobody(w);
	if (!rc)
		rc = peer_find(qpn, &r->process, &index);
	if (rc) {
		free(r);
		return rc == -ENOENT && exec_weftd_is_young(w->x) ? -EAGAIN : rc;
	}
	rc = lead_to(r, index);
	if (rc) {
		peer_put(r->process);
		free(r);
		return rc;
	}
	*out = r;
	return 0;
}

int route_to(struct work *w, struct hca_qp *qp, uint32_t qpn, const struct end **out)
{
	struct route **at = place_of(qp->routes, qpn);
	int rc;

	if (*at && (*at)->e.qpn == qpn) {
		route_enter(w, &(*at)->e);
		*out = &(*at)->e;
		if (is_fresh(*out))
			return 0;
	}
	drop(at, true);
	rc = look_up(w, qpn, at);
	if (rc)
		return rc;
	*out = &(*at)->e;
	route_enter(w, *out);
	return 0;
}

/* By who helps a peer: only a queue of our own can be found. */
static int own_srq(uint32_t srqn, const struct end **out)
{
	const struct view own = proc_view();
	int64_t index = view_find_qpn(&own, srqn);
	struct hca_srq *srq = index < 0 ? NULL : table_srq(index);

	if (!srq)
		return -EXDEV;
	*out = &srq->me;
	return 0;
}

int route_srq(struct work *w, uint32_t srqn, const struct end **out)
{
	struct hca_qp *qp;

	if (w->req->view.pid)
		return own_srq(srqn, out);
	qp = table_qp(w->req->index);
	return qp ? route_to(w, qp, srqn, out) : -ENOENT;
}

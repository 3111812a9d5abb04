// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests that come a moment too early: to a port that is bound but does not listen yet, or
 * whose listener has just gone, or listens in another port space (perftest meets at a port for
 * connections, and then takes the same one for datagrams).  Between machines a request is under way
 * for some time, and programs that listen anew for a second connection rely on that; here it would
 * arrive at once.  So such a request waits a little, as if it were still on the wire.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cm/connect.h"
#include "cm/held.h"
#include "cm/ports.h"
#include "cm/sidr.h"

/*
 * Far below what a requester waits for an answer (4.3 s by default), and longer than a program that
 * listens anew is kept from its CPU on a machine that is busy.
 */
enum { HELD_MAX = 256, HOLD_MS = 1000, RECENT_MS = 4000 };

struct held {
	struct deadline until; /* first member */
	struct held *next;
	struct mad_addr from;
	struct cm_msg m;
};

void cm_listener_gone(struct cm *cm, const struct cm_id *id)
{
	struct cm_recent *r = &cm->recent[cm->next_recent++ % CM_RECENT];

	*r = (struct cm_recent){id->bind.addr.port, cm->env.now(cm->env.arg)};
}

static bool was_listening(const struct cm *cm, uint16_t port)
{
	uint64_t now = cm->env.now(cm->env.arg);

	for (int i = 0; i < CM_RECENT; i++) {
		const struct cm_recent *r = &cm->recent[i];

		if (r->when && r->port == port &&
			now - r->when < (uint64_t)RECENT_MS * NSEC_PER_MSEC)
			return true;
	}
	return false;
}

static uint64_t service_of(const struct cm_msg *m)
{
	return m->hdr.attr == CM_SIDR_REQ ? m->sidr_req.service_id : m->req.service_id;
}

bool cm_hold(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	uint16_t port = service_of(m);
	struct held *h;

	if (service_of(m) >> 32 || cm->n_held >= HELD_MAX ||
		!(cm_port_is_bound(cm, port) || was_listening(cm, port)))
		return false;
	h = calloc(1, sizeof *h);
	if (!h)
		return false;
	h->from = *from;
	h->m = *m;
	if (deadline_set(&cm->held_until, &h->until,
		    cm->env.now(cm->env.arg) + (uint64_t)HOLD_MS * NSEC_PER_MSEC)) {
		free(h);
		return false;
	}
	h->next = cm->held;
	cm->held = h;
	cm->n_held++;
	return true;
}

/* What waited is looked at again, for the last time. */
static void again(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	if (m->hdr.attr == CM_SIDR_REQ)
		sidr_request(cm, from, m, false);
	else
		cm_request(cm, from, m, false);
}

static void drop(struct cm *cm, struct held *h)
{
	struct held **link = &cm->held;

	while (*link != h)
		link = &(*link)->next;
	*link = h->next;
	cm->n_held--;
	deadline_clear(&cm->held_until, &h->until);
	free(h);
}

void cm_unhold(struct cm *cm, const struct mad_addr *from, uint32_t remote_comm)
{
	for (struct held *h = cm->held; h; h = h->next) {
		if (h->m.hdr.attr == CM_REQ && h->m.req.local_comm_id == remote_comm &&
			mad_same_peer(&h->from, from)) {
			drop(cm, h);
			return;
		}
	}
}

void cm_try_held(struct cm *cm, uint16_t ps, uint16_t port)
{
	for (struct held *h = cm->held, *next; h; h = next) {
		struct mad_addr from = h->from;
		struct cm_msg m = h->m;

		next = h->next;
		if (service_of(&m) != cm_service_id(ps, port))
			continue;
		drop(cm, h);
		again(cm, &from, &m);
	}
}

void cm_run_held(struct cm *cm)
{
	uint64_t now = cm->env.now(cm->env.arg);
	struct deadline *d;

	while ((d = deadline_pop(&cm->held_until, now))) {
		struct held *h = (struct held *)d;
		struct mad_addr from = h->from;
		struct cm_msg m = h->m;

		drop(cm, h);
		again(cm, &from, &m);
	}
}

void cm_end_held(struct cm *cm)
{
	while (cm->held)
		drop(cm, cm->held);
	deadlines_free(&cm->held_until);
}

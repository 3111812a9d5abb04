// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests that come a moment too early: to a port that is bound but does not listen yet, or
 * whose listener has just gone, or listens in another port space (perftest meets at a port for
 * connections, and then takes the same one for datagrams).  Between machines a request is under way
 * for some time, and programs that listen anew for a second connection rely on that; here it would
 * arrive at once.  So such a request waits a little, as if it were still on the wire: while the
 * process that has the port, or listened there, lives and may have got no CPU yet, for as long as a
 * requester thinks nothing of; if it is gone, only for one that takes its place at once.  So it
 * does just after weftd was killed, while processes publish their listeners again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cm/accept.h"
#include "cm/held.h"
#include "cm/ports.h"
#include "cm/sidr.h"

enum {
	HELD_MAX = 256,
	LIVE_HOLD_MS = 2000,
	LIVE_RECENT_MS = 4000, /* since its listener went */
	PUBLISH_MS = 2000,     /* until listeners have heard of a weftd started anew */
	GONE_HOLD_MS = 250,
	GONE_RECENT_MS = 1000,
};

struct held {
	struct deadline until; /* first member */
	struct held *next;
	struct mad_addr from;
	struct cm_msg m;
};

void cm_listener_gone(struct cm *cm, const struct cm_id *id)
{
	struct cm_recent *r = &cm->recent[cm->next_recent++ % CM_RECENT];

	*r = (struct cm_recent){id->bind.addr.port, id->owner, cm->env.now(cm->env.arg)};
}

/* How long a request to that port may wait for a listener, 0: not at all. */
static unsigned port_hold_ms(struct cm *cm, uint16_t port)
{
	uint64_t now = cm->env.now(cm->env.arg);
	unsigned hold = 0;

	if (cm_port_is_bound(cm, port))
		return LIVE_HOLD_MS;
	if (cm->took_over && now - cm->started < (uint64_t)PUBLISH_MS * NSEC_PER_MSEC)
		return LIVE_HOLD_MS;
	for (int i = 0; i < CM_RECENT; i++) {
		const struct cm_recent *r = &cm->recent[i];
		uint64_t ago = now - r->when;

		if (!r->when || r->port != port)
			continue;
		if (r->owner && ago < (uint64_t)LIVE_RECENT_MS * NSEC_PER_MSEC)
			return LIVE_HOLD_MS;
		if (ago < (uint64_t)GONE_RECENT_MS * NSEC_PER_MSEC)
			hold = GONE_HOLD_MS;
	}
	return hold;
}

static uint64_t service_of(const struct cm_msg *m)
{
	return m->hdr.attr == CM_SIDR_REQ ? m->sidr_req.service_id : m->req.service_id;
}

/* Until when it may wait, 0: not at all; never until its requester would send it again. */
static uint64_t hold_until(struct cm *cm, const struct cm_msg *m)
{
	uint64_t service = service_of(m);
	unsigned ms = service >> 32 ? 0 : port_hold_ms(cm, service);

	if (ms && m->hdr.attr == CM_REQ && ms > cm_timeout_ms(m->req.remote_timeout) / 2)
		ms = cm_timeout_ms(m->req.remote_timeout) / 2;
	return ms ? cm->env.now(cm->env.arg) + (uint64_t)ms * NSEC_PER_MSEC : 0;
}

bool cm_hold(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	uint64_t until = cm->n_held < HELD_MAX ? hold_until(cm, m) : 0;
	struct held *h = until ? calloc(1, sizeof *h) : NULL;

	if (!h)
		return false;
	h->from = *from;
	h->m = *m;
	if (deadline_set(&cm->held_until, &h->until, until)) {
		free(h);
		return false;
	}
	h->next = cm->held;
	cm->held = h;
	cm->n_held++;
	return true;
}

void cm_held_owner_gone(struct cm *cm, uint32_t owner)
{
	for (int i = 0; i < CM_RECENT; i++)
		if (cm->recent[i].owner == owner)
			cm->recent[i].owner = 0;
	for (struct held *h = cm->held; h; h = h->next) {
		uint64_t until = hold_until(cm, &h->m);

		if (until < h->until.when) /* set already: cannot fail */
			(void)deadline_set(&cm->held_until, &h->until, until ? until : 1);
	}
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

bool cm_unhold(struct cm *cm, const struct mad_addr *from, uint32_t remote_comm, uint64_t tid)
{
	for (struct held *h = cm->held; h; h = h->next) {
		if (h->m.hdr.attr == CM_REQ && h->m.req.local_comm_id == remote_comm &&
			h->m.hdr.tid == tid && mad_same_peer(&h->from, from)) {
			drop(cm, h);
			return true;
		}
	}
	return false;
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

// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/walk.h"

/* Besides a verdict: further. */
enum { GOES_ON = -1 };

/* A packet on its way. */
struct step {
	const struct tables *t;
	const struct walk_packet *p;
	uint32_t at; /* the port by which it came, or where it began */
	struct walk *out;
};

static bool pkey_passes(const struct step *s, uint32_t port, unsigned way)
{
	return !s->p->pkey || !(tables_load(&s->t->ports[port].enforce) & way) ||
	       tables_lets_pkey(s->t, port, s->p->pkey);
}

static int stop(const struct step *s, uint32_t at, enum walk_verdict why)
{
	s->out->at = at;
	return why;
}

/* May it leave by that port, and on which lane? */
static int leave(const struct step *s, uint32_t port, uint8_t *vl)
{
	const struct tables_port *h = &s->t->ports[port];
	const struct tables_node *n = &s->t->nodes[h->node];
	uint8_t mtu = tables_load(&h->mtu);
	uint64_t vls;

	if (!tables_load(&h->peer) || tables_load(&h->state) != TABLES_ACTIVE)
		return stop(s, port, WALK_NO_LINK);
	if (!pkey_passes(s, port, ENFORCE_OUT))
		return stop(s, port, WALK_PKEY_OUT);
	vls = tables_sl2vl(s->t, h->node, s->at - n->port0, port - n->port0);
	*vl = tables_vl(vls, s->p->sl);
	if (*vl >= tables_load(&h->vls))
		return stop(s, port, WALK_NO_VL);
	if (s->p->mtu > mtu)
		return stop(s, port, WALK_MTU);
	if (!s->out->mtu || mtu < s->out->mtu)
		s->out->mtu = mtu;
	return GOES_ON;
}

static int come_in(const struct step *s)
{
	uint8_t state = tables_load(&s->t->ports[s->at].state);

	if (state != TABLES_ARMED && state != TABLES_ACTIVE)
		return stop(s, s->at, WALK_NOT_READY);
	if (!pkey_passes(s, s->at, ENFORCE_IN))
		return stop(s, s->at, WALK_PKEY_IN);
	return GOES_ON;
}

/* Over one link. */
static int cross(struct step *s, uint32_t port)
{
	struct walk *w = s->out;
	uint32_t peer;
	uint8_t vl;
	int why = leave(s, port, &vl);

	if (why != GOES_ON)
		return why;
	if (w->hops == WALK_HOPS)
		return stop(s, port, WALK_LOOP);
	peer = tables_load(&s->t->ports[port].peer);
	if (!peer || peer >= s->t->head->n_ports) /* it went meanwhile */
		return stop(s, port, WALK_NO_LINK);
	w->hop[w->hops++] = (struct walk_hop){port, peer, vl};
	s->at = peer;
	return come_in(s);
}

/* By the forwarding table of a switch. */
static int forward(struct step *s)
{
	const struct tables_node *n = &s->t->nodes[s->t->ports[s->at].node];
	uint8_t port = tables_route(s->t, n, s->p->dlid);

	if (!port || port > n->n_ports)
		return stop(s, s->at, WALK_NO_ROUTE);
	if (n->port0 + port == s->at)
		return stop(s, s->at, WALK_BACK);
	return cross(s, n->port0 + port);
}

/* At a node. */
static int go_on(struct step *s)
{
	uint32_t self = tables_managed(s->t, s->at);

	if (tables_owns_lid(&s->t->ports[self], s->p->dlid))
		return stop(s, self,
			s->p->pkey && tables_find_pkey(s->t, self, s->p->pkey) < 0 ? WALK_PKEY
										   : WALK_ARRIVES);
	if (tables_is_switch(s->t, s->at))
		return forward(s);
	return s->at == s->p->port && !s->out->hops ? cross(s, s->at) : stop(s, s->at, WALK_STRAY);
}

void walk(const struct tables *t, const struct walk_packet *p, struct walk *out)
{
	struct step s = {.t = t, .p = p, .at = p->port, .out = out};
	int why = GOES_ON;

	out->hops = 0;
	out->mtu = 0;
	out->epoch = atomic_load_explicit(&t->head->epoch, memory_order_acquire);
	if (!p->port || p->port >= t->head->n_ports)
		why = stop(&s, p->port, WALK_NO_LINK);
	while (why == GOES_ON)
		why = go_on(&s);
	out->verdict = why;
}

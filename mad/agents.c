// SPDX-License-Identifier: BSD-3-Clause
#include "mad/agents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/rmpp_recv.h"
#include "mad/transact.h"

enum { METHODS = 128, HI_TID_MASK = 0xffffff };

/* A class of one version; of the classes with OUIs, one of them. */
struct mad_registry {
	struct mad_registry *next; /* another version or OUI of it */
	uint8_t version;
	uint32_t oui;
	unsigned agents;
	struct mad_agent *by_method[METHODS];
};

/* ---- by the upper half of their transaction ids ---- */

static struct mad_agent *find_hi_tid(const struct mad_layer *layer, uint32_t hi_tid)
{
	struct mad_agent *a = layer->by_tid[hi_tid % MAD_AGENT_BUCKETS];

	while (a && a->hi_tid != hi_tid)
		a = a->tid_next;
	return a;
}

struct mad_agent *mad_agent_of_tid(const struct mad_port *port, uint64_t tid)
{
	struct mad_agent *a = find_hi_tid(port->layer, tid >> 32);

	return a && a->port == port ? a : NULL;
}

/* 24 bits, used again as late as possible. */
static void take_hi_tid(struct mad_agent *a)
{
	struct mad_layer *layer = a->port->layer;
	struct mad_agent **bucket;

	do
		layer->last_hi_tid = (layer->last_hi_tid + 1) & HI_TID_MASK;
	while (!layer->last_hi_tid || find_hi_tid(layer, layer->last_hi_tid));
	a->hi_tid = layer->last_hi_tid;
	bucket = &layer->by_tid[a->hi_tid % MAD_AGENT_BUCKETS];
	a->tid_next = *bucket;
	*bucket = a;
}

static void give_hi_tid(struct mad_agent *a)
{
	struct mad_agent **link = &a->port->layer->by_tid[a->hi_tid % MAD_AGENT_BUCKETS];

	while (*link != a)
		link = &(*link)->tid_next;
	*link = a->tid_next;
}

/* ---- by what they are registered for ---- */

/* Classes that nobody can register for have no list. */
static int list_of(uint8_t mgmt_class)
{
	if (mgmt_class == MAD_CLASS_SUBN_DR)
		return 0;
	return mgmt_class && mgmt_class < MAD_REGISTERED_CLASSES ? mgmt_class : -1;
}

static struct mad_registry *find_class(
	const struct mad_port *port, uint8_t mgmt_class, uint8_t version, uint32_t oui)
{
	int list = list_of(mgmt_class);
	struct mad_registry *c = list < 0 ? NULL : port->classes[list];

	while (c && (c->version != version || c->oui != oui))
		c = c->next;
	return c;
}

static unsigned count_ouis(const struct mad_registry *c, uint8_t version)
{
	unsigned n = 0;

	for (; c; c = c->next)
		n += c->version == version;
	return n;
}

static uint32_t oui_of(const struct mad_registration *r)
{
	return mad_class_has_oui(r->mgmt_class) ? r->oui : 0;
}

static struct mad_registry *get_class(struct mad_port *port, const struct mad_registration *r)
{
	struct mad_registry *c = find_class(port, r->mgmt_class, r->class_version, oui_of(r));
	struct mad_registry **list = &port->classes[list_of(r->mgmt_class)];

	if (c)
		return c;
	c = count_ouis(*list, r->class_version) < MAD_OUIS_MAX ? calloc(1, sizeof *c) : NULL;
	if (!c)
		return NULL;
	c->version = r->class_version;
	c->oui = oui_of(r);
	c->next = *list;
	*list = c;
	return c;
}

static void put_class(struct mad_port *port, const struct mad_registration *r)
{
	struct mad_registry **link = &port->classes[list_of(r->mgmt_class)], *c;

	while ((*link)->version != r->class_version || (*link)->oui != oui_of(r))
		link = &(*link)->next;
	c = *link;
	if (c->agents)
		return;
	*link = c->next;
	free(c);
}

static bool wants(const struct mad_agent *a, unsigned method)
{
	return a->reg.methods[method / 64] >> method % 64 & 1;
}

static bool is_taken(const struct mad_registry *c, const struct mad_agent *a)
{
	for (unsigned m = 0; m < METHODS; m++)
		if (wants(a, m) && c->by_method[m])
			return true;
	return false;
}

/* Its methods of the class are the agent's. */
static int take_methods(struct mad_port *port, struct mad_agent *a)
{
	struct mad_registry *c = get_class(port, &a->reg);

	if (!c)
		return -ENOMEM;
	if (is_taken(c, a))
		return -EINVAL;
	for (unsigned m = 0; m < METHODS; m++)
		if (wants(a, m))
			c->by_method[m] = a;
	c->agents++;
	a->registry = c;
	return 0;
}

static void give_methods(struct mad_agent *a)
{
	for (unsigned m = 0; m < METHODS; m++)
		if (wants(a, m))
			a->registry->by_method[m] = NULL;
	a->registry->agents--;
	put_class(a->port, &a->reg);
	a->registry = NULL;
}

int mad_register(struct mad_port *port, struct mad_agent *a)
{
	int ret = mad_registration_check(&a->reg, NULL);

	if (ret)
		return ret;
	if (!a->reg.qpn && !port->has_qp0)
		return -EPROTONOSUPPORT;
	a->registry = NULL;
	if (a->reg.mgmt_class)
		ret = take_methods(port, a);
	if (ret)
		return ret;
	a->port = port;
	take_hi_tid(a);
	a->sends = NULL;
	a->next = port->agents;
	a->link = &port->agents;
	if (a->next)
		a->next->link = &a->next;
	port->agents = a;
	return 0;
}

void mad_unregister(struct mad_agent *a)
{
	while (a->sends)
		mad_cancel(a->sends);
	rmpp_forget(a);
	if (a->registry)
		give_methods(a);
	give_hi_tid(a);
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
}

struct mad_agent *mad_registered(
	const struct mad_port *port, const struct mad_hdr *hdr, const uint8_t mad[MAD_SIZE])
{
	const struct mad_registry *c =
		find_class(port, hdr->mgmt_class, hdr->class_version, mad_oui(mad));

	return c && hdr->method < METHODS ? c->by_method[hdr->method] : NULL;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "mad/agents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/rmpp.h"
#include "mad/transact.h"

enum { METHODS = 128 };

/* A class of one version. */
struct mad_registry {
	struct mad_registry *next; /* another version of it */
	uint8_t version;
	unsigned rmpp_agents; /* that know RMPP */
	struct mad_agent *by_method[METHODS];
};

static struct mad_registry *find_class(
	const struct mad_port *port, uint8_t mgmt_class, uint8_t version)
{
	struct mad_registry *c = port->classes[mgmt_class];

	while (c && c->version != version)
		c = c->next;
	return c;
}

static struct mad_registry *get_class(struct mad_port *port, uint8_t mgmt_class, uint8_t version)
{
	struct mad_registry *c = find_class(port, mgmt_class, version);

	if (c)
		return c;
	c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->version = version;
	c->next = port->classes[mgmt_class];
	port->classes[mgmt_class] = c;
	return c;
}

static bool wants(const struct mad_agent *a, unsigned method)
{
	return a->methods[method / 64] >> method % 64 & 1;
}

static bool is_taken(const struct mad_registry *c, const struct mad_agent *a)
{
	for (unsigned m = 0; m < METHODS; m++)
		if (wants(a, m) && c->by_method[m])
			return true;
	return false;
}

int mad_register(struct mad_port *port, struct mad_agent *a)
{
	struct mad_registry *c = get_class(port, a->mgmt_class, a->class_version);

	if (!c)
		return -ENOMEM;
	if (is_taken(c, a))
		return -EEXIST;
	for (unsigned m = 0; m < METHODS; m++)
		if (wants(a, m))
			c->by_method[m] = a;
	c->rmpp_agents += !!a->receive_long;
	a->port = port;
	a->hi_tid = ++port->next_hi_tid;
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
	struct mad_registry *c = find_class(a->port, a->mgmt_class, a->class_version);

	while (a->sends)
		mad_cancel(a->sends);
	rmpp_forget(a);
	for (unsigned m = 0; m < METHODS; m++)
		if (wants(a, m))
			c->by_method[m] = NULL;
	c->rmpp_agents -= !!a->receive_long;
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
}

struct mad_agent *mad_registered(const struct mad_port *port, const struct mad_hdr *hdr)
{
	const struct mad_registry *c = find_class(port, hdr->mgmt_class, hdr->class_version);

	return c && hdr->method < METHODS ? c->by_method[hdr->method] : NULL;
}

bool mad_class_has_rmpp(const struct mad_port *port, uint8_t mgmt_class)
{
	for (const struct mad_registry *c = port->classes[mgmt_class]; c; c = c->next)
		if (c->rmpp_agents)
			return true;
	return false;
}

void mad_agents_free(struct mad_port *port)
{
	for (unsigned i = 0; i < MAD_CLASSES; i++)
		while (port->classes[i]) {
			struct mad_registry *c = port->classes[i];

			port->classes[i] = c->next;
			free(c);
		}
}

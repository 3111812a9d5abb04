// SPDX-License-Identifier: BSD-3-Clause
#include "topo/wire.h"

/* The port behind an alias says nothing of the link, so it gets it here. */
static int wire_alias(struct reader *r, const struct link *l, const struct name *name)
{
	struct topo_port *end = &r->build.topo.nodes[name->node].ports[name->port];

	if (end->peer != TOPO_NONE)
		return reader_fail_at(
			r, l->place, "the port of alias \"%s\" is wired already", name->text);
	if (name->node == l->node && name->port == l->port)
		return reader_fail_at(r, l->place, "port %u is wired to itself", l->port);
	topo_build_wire(&r->build, l->node, l->port, name->node, name->port);
	return 0;
}

/* Puts the peer's number where its name stood. */
static int wire_one(struct reader *r, const struct link *l)
{
	const struct name *name = &r->names.list[l->name];
	struct topo_port *port = &r->build.topo.nodes[l->node].ports[l->port];

	if (name->node == TOPO_NONE)
		return reader_fail_at(r, l->place, "there is no %s \"%s\"",
			l->alias ? "alias" : "node", name->text);
	if (l->alias)
		return wire_alias(r, l, name);
	if (l->peer_port > r->build.topo.nodes[name->node].n_ports)
		return reader_fail_at(r, l->place, "port %u of \"%s\", which has %u", l->peer_port,
			name->text, r->build.topo.nodes[name->node].n_ports);
	if (name->node == l->node && l->peer_port == l->port)
		return reader_fail_at(r, l->place, "port %u is wired to itself", l->port);
	port->peer = name->node;
	port->peer_port = l->peer_port;
	return 0;
}

static int check_back(struct reader *r, const struct link *l)
{
	const struct topo_node *nodes = r->build.topo.nodes;
	const struct topo_port *port = &nodes[l->node].ports[l->port];
	const struct topo_port *back = &nodes[port->peer].ports[port->peer_port];

	if (back->peer == TOPO_NONE)
		return reader_fail_at(r, l->place,
			"a link from one side alone: \"%s\" says nothing of its port %u",
			nodes[port->peer].id, port->peer_port);
	if (back->peer != l->node || back->peer_port != l->port)
		return reader_fail_at(r, l->place,
			"port %u of \"%s\" is wired to port %u of \"%s\", not to this one",
			port->peer_port, nodes[port->peer].id, back->peer_port,
			nodes[back->peer].id);
	return 0;
}

int wire_all(struct reader *r)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->n_links; i++)
		rc = wire_one(r, &r->links[i]);
	for (uint32_t i = 0; !rc && i < r->n_links; i++)
		rc = check_back(r, &r->links[i]);
	return rc;
}

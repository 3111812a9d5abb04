// SPDX-License-Identifier: BSD-3-Clause
#include "topo/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void topo_build_begin(struct topo_build *b)
{
	*b = (struct topo_build){.caps = {.width = 2, .speed = 1},
		.guids = {[TOPO_CA] = {0x100000, 0x100000},
			[TOPO_SWITCH] = {0x200000, 0x200000},
			[TOPO_ROUTER] = {0x300000, 0x300000}}};
}

static int make_room(struct topo_build *b)
{
	uint32_t room = b->room ? b->room * 2 : 64;
	struct topo_node *nodes;

	if (b->topo.n_nodes >= TOPO_UNICAST_LIDS)
		return -ENOSPC;
	if (b->topo.n_nodes < b->room)
		return 0;
	nodes = reallocarray(b->topo.nodes, room, sizeof *nodes);
	if (!nodes)
		return -ENOMEM;
	b->topo.nodes = nodes;
	b->room = room;
	return 0;
}

static void fill_ports(const struct topo_build *b, struct topo_node *node)
{
	for (unsigned p = node->kind == TOPO_SWITCH ? 0 : 1; p <= node->n_ports; p++)
		node->ports[p] = (struct topo_port){
			.guid = node->kind == TOPO_SWITCH ? (p ? 0 : node->guid) : node->guid + p,
			.width = b->caps.width,
			.speed = b->caps.speed,
			.ext_speed = b->caps.ext_speed};
	for (unsigned p = 0; p <= node->n_ports; p++)
		node->ports[p].peer = TOPO_NONE;
}

int topo_build_node(struct topo_build *b, enum topo_kind kind, unsigned n_ports, const char *id,
	const char *description, uint32_t *n)
{
	struct topo_guids *guids = &b->guids[kind];
	struct topo_node *node;
	int rc = make_room(b);

	if (rc)
		return rc;
	node = &b->topo.nodes[b->topo.n_nodes];
	*node = (struct topo_node){.kind = kind,
		.n_ports = n_ports,
		.vendor = b->vendor,
		.device = b->device,
		.guid = guids->next,
		.system_guid = b->system_guid ? b->system_guid : guids->next,
		.id = strdup(id),
		.description = strdup(*description ? description : id),
		.ports = calloc(n_ports + 1, sizeof(struct topo_port))};
	*n = b->topo.n_nodes++;
	if (!node->id || !node->description || !node->ports)
		return -ENOMEM;
	fill_ports(b, node);
	guids->next += kind == TOPO_SWITCH ? 1 : n_ports + 1;
	return 0;
}

void topo_build_wire(struct topo_build *b, uint32_t a, unsigned a_port, uint32_t c, unsigned c_port)
{
	struct topo_port *p = &b->topo.nodes[a].ports[a_port];
	struct topo_port *q = &b->topo.nodes[c].ports[c_port];

	p->peer = c;
	p->peer_port = c_port;
	q->peer = a;
	q->peer_port = a_port;
}

/* Adapters first; else they stay in their order.  number[old]: the new one. */
static void number_nodes(const struct topo *t, uint32_t *number, uint32_t *n_cas)
{
	uint32_t next = 0;

	for (uint32_t n = 0; n < t->n_nodes; n++)
		if (t->nodes[n].kind == TOPO_CA)
			number[n] = next++;
	*n_cas = next;
	for (uint32_t n = 0; n < t->n_nodes; n++)
		if (t->nodes[n].kind != TOPO_CA)
			number[n] = next++;
}

int topo_build_end(struct topo_build *b, struct topo *out)
{
	struct topo *t = &b->topo;
	uint32_t *number = calloc(t->n_nodes + 1, sizeof *number);
	struct topo_node *nodes = calloc(t->n_nodes + 1, sizeof *nodes);

	if (!number || !nodes) {
		free(number);
		free(nodes);
		return -ENOMEM;
	}
	*out = (struct topo){.nodes = nodes,
		.n_nodes = t->n_nodes,
		.n_aliases = t->n_aliases,
		.aliases = t->aliases};
	number_nodes(t, number, &out->n_cas);
	for (uint32_t n = 0; n < t->n_nodes; n++) {
		struct topo_node *node = &nodes[number[n]];

		*node = t->nodes[n];
		for (unsigned p = 0; p <= node->n_ports; p++)
			if (node->ports[p].peer != TOPO_NONE)
				node->ports[p].peer = number[node->ports[p].peer];
	}
	for (uint32_t n = 0; n < out->n_aliases; n++)
		out->aliases[n].node = number[out->aliases[n].node];
	free(number);
	free(t->nodes);
	topo_build_begin(b);
	return 0;
}

void topo_build_drop(struct topo_build *b)
{
	topo_free(&b->topo);
	topo_build_begin(b);
}

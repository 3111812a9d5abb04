/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether two topologies are the same. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "topo/netlist.h"
#include "topo/print.h"

static inline bool topo_same_port(const struct topo_port *a, const struct topo_port *b)
{
	return a->guid == b->guid && a->peer == b->peer && a->peer_port == b->peer_port &&
	       a->lmc == b->lmc && a->lid == b->lid && a->width == b->width &&
	       a->speed == b->speed && a->ext_speed == b->ext_speed;
}

static inline bool topo_same_node(const struct topo_node *a, const struct topo_node *b)
{
	if (a->kind != b->kind || a->enhanced != b->enhanced || a->n_ports != b->n_ports ||
		a->vendor != b->vendor || a->device != b->device || strcmp(a->id, b->id) != 0 ||
		strcmp(a->description, b->description) != 0 || a->guid != b->guid ||
		a->system_guid != b->system_guid)
		return false;
	for (unsigned p = 0; p <= a->n_ports; p++)
		if (!topo_same_port(&a->ports[p], &b->ports[p]))
			return false;
	return true;
}

static inline bool topo_same(const struct topo *a, const struct topo *b)
{
	if (a->n_nodes != b->n_nodes || a->n_cas != b->n_cas)
		return false;
	for (uint32_t n = 0; n < a->n_nodes; n++)
		if (!topo_same_node(&a->nodes[n], &b->nodes[n]))
			return false;
	return true;
}

/* Whether it is itself after it was printed and read again; error says why not. */
static inline bool topo_comes_back(const struct topo *t, char error[TOPO_ERROR])
{
	struct netlist again;
	size_t len = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);
	bool same;

	if (!out)
		abort();
	topo_print_net(t, out);
	fclose(out);
	same = !netlist_parse(&again, "printed", text, len, error) && topo_same(t, &again.topo);
	netlist_free(&again);
	free(text);
	return same;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "topo/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LMC_MAX = 7 };

struct owned {
	uint64_t guid;
	uint32_t node;
};

static int __attribute__((format(printf, 3, 4)))
fail(struct topo_fault *fault, uint32_t node, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fault->node = node;
	vsnprintf(fault->reason, sizeof fault->reason, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int by_guid(const void *a, const void *b)
{
	const struct owned *x = a, *y = b;

	return x->guid != y->guid ? (x->guid < y->guid ? -1 : 1)
				  : (x->node > y->node) - (x->node < y->node);
}

static int check_unique(
	const struct topo *t, struct owned *v, size_t n, const char *of, struct topo_fault *fault)
{
	if (n)
		qsort(v, n, sizeof *v, by_guid);
	if (n && !v[0].guid)
		return fail(fault, v[0].node, "%s of \"%s\" has the GUID 0", of,
			t->nodes[v[0].node].id);
	for (size_t i = 1; i < n; i++)
		if (v[i].guid == v[i - 1].guid)
			return fail(fault, v[i].node,
				"%s of \"%s\" has the GUID 0x%" PRIx64 ", as \"%s\" has", of,
				t->nodes[v[i].node].id, v[i].guid, t->nodes[v[i - 1].node].id);
	return 0;
}

/* An adapter's port with a wire.  What has none got its GUID by counting, and nobody sees it. */
static bool is_end_port(const struct topo_node *node, unsigned p)
{
	return node->kind != TOPO_SWITCH && node->ports[p].peer != TOPO_NONE;
}

static int check_guids(const struct topo *t, struct topo_fault *fault)
{
	size_t ports = 0, n_ports = 0;
	struct owned *v;
	int rc;

	for (uint32_t n = 0; n < t->n_nodes; n++)
		ports += t->nodes[n].n_ports;
	v = calloc(ports + t->n_nodes + 1, sizeof *v);
	if (!v)
		return -ENOMEM;
	for (uint32_t n = 0; n < t->n_nodes; n++)
		v[n] = (struct owned){t->nodes[n].guid, n};
	rc = check_unique(t, v, t->n_nodes, "the node", fault);
	for (uint32_t n = 0; n < t->n_nodes; n++)
		for (unsigned p = 1; p <= t->nodes[n].n_ports; p++)
			if (is_end_port(&t->nodes[n], p))
				v[n_ports++] = (struct owned){t->nodes[n].ports[p].guid, n};
	rc = rc ? rc : check_unique(t, v, n_ports, "a port", fault);
	free(v);
	return rc;
}

struct lids {
	uint8_t taken[TOPO_UNICAST_LIDS + 1];
	uint32_t needed;
};

static int take_lids(
	struct lids *l, const struct topo *t, uint32_t n, unsigned p, struct topo_fault *fault)
{
	const struct topo_port *port = &t->nodes[n].ports[p];
	unsigned count;

	if (port->lmc > LMC_MAX)
		return fail(fault, n, "LMC %u of port %u is above 7", port->lmc, p);
	count = 1u << port->lmc;
	l->needed += count;
	if (!port->lid)
		return 0;
	if (port->lid + count - 1 > TOPO_UNICAST_LIDS)
		return fail(fault, n, "LID %u of port %u is no unicast LID", port->lid, p);
	if (port->lid & (count - 1))
		return fail(fault, n, "LID %u of port %u is no multiple of its %u LIDs", port->lid,
			p, count);
	for (unsigned i = port->lid; i < port->lid + count; i++)
		if (l->taken[i]++)
			return fail(fault, n, "LID %u of port %u is another port's, too", i, p);
	return 0;
}

static int check_lids(const struct topo *t, struct topo_fault *fault)
{
	struct lids *l = calloc(1, sizeof *l);
	int rc = l ? 0 : -ENOMEM;

	for (uint32_t n = 0; !rc && n < t->n_nodes; n++) {
		const struct topo_node *node = &t->nodes[n];

		if (node->kind == TOPO_SWITCH)
			rc = take_lids(l, t, n, 0, fault);
		for (unsigned p = 1; !rc && p <= node->n_ports; p++)
			if (is_end_port(node, p))
				rc = take_lids(l, t, n, p, fault);
		if (!rc && l->needed > TOPO_UNICAST_LIDS)
			rc = fail(fault, n, "too many LIDs: a subnet has %d", TOPO_UNICAST_LIDS);
	}
	free(l);
	return rc;
}

static int check_wires(const struct topo *t, struct topo_fault *fault)
{
	for (uint32_t n = 0; n < t->n_nodes; n++)
		for (unsigned p = 1; p <= t->nodes[n].n_ports; p++) {
			const struct topo_port *a = &t->nodes[n].ports[p], *b;

			if (a->peer == TOPO_NONE)
				continue;
			b = &t->nodes[a->peer].ports[a->peer_port];
			if (!(a->width & b->width))
				return fail(fault, n,
					"port %u and its peer have no link width in common", p);
			if (!(a->speed & b->speed))
				return fail(fault, n,
					"port %u and its peer have no link speed in common", p);
		}
	return 0;
}

int topo_check(const struct topo *t, struct topo_fault *fault)
{
	int rc = check_guids(t, fault);

	rc = rc ? rc : check_wires(t, fault);
	return rc ? rc : check_lids(t, fault);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "topo/print.h"

#include <inttypes.h>

#include "topo/build.h"

static const struct {
	const char *name, *record, *guid;
} kinds[] = {
	[TOPO_CA] = {"adapter", "Hca", "caguid"},
	[TOPO_SWITCH] = {"switch", "Switch", "switchguid"},
	[TOPO_ROUTER] = {"router", "Rt", "rtguid"},
};

const char *topo_kind_name(enum topo_kind kind)
{
	return kinds[kind].name;
}

unsigned topo_wired(const struct topo_node *node)
{
	unsigned wired = 0;

	for (unsigned p = 1; p <= node->n_ports; p++)
		wired += node->ports[p].peer != TOPO_NONE;
	return wired;
}

/* ---- netlists ---- */

static struct topo_caps caps_of(const struct topo_port *p)
{
	return (struct topo_caps){p->width, p->speed, p->ext_speed};
}

static bool same_caps(struct topo_caps a, struct topo_caps b)
{
	return a.width == b.width && a.speed == b.speed && a.ext_speed == b.ext_speed;
}

/* What the node's ports can do unless they say something else: port 0 cannot say it. */
static struct topo_caps caps_of_node(const struct topo_node *n)
{
	return caps_of(&n->ports[n->kind == TOPO_SWITCH ? 0 : 1]);
}

/* Whether an unwired port is what it would be without a line of its own. */
static bool is_plain(const struct topo_node *n, unsigned p)
{
	const struct topo_port *port = &n->ports[p];

	return same_caps(caps_of(port), caps_of_node(n)) &&
	       (n->kind == TOPO_SWITCH || (port->guid == n->guid + p && !port->lid && !port->lmc));
}

static void print_node(const struct topo_node *n, struct topo_caps *caps, FILE *out)
{
	fprintf(out, "\nvendid=0x%x\ndevid=0x%x\nsysimgguid=0x%" PRIx64 "\n", n->vendor, n->device,
		n->system_guid);
	if (!same_caps(*caps, caps_of_node(n))) {
		*caps = caps_of_node(n);
		fprintf(out, "width=%u\nspeed=%u\nextspeed=%u\n", caps->width, caps->speed,
			caps->ext_speed);
	}
	fprintf(out, "%s=0x%" PRIx64 "\n%s\t%u \"%s\"\t# \"%s\"", kinds[n->kind].guid, n->guid,
		kinds[n->kind].record, n->n_ports, n->id, n->description);
	if (n->kind == TOPO_SWITCH)
		fprintf(out, " %s port 0 lid %u lmc %u", n->enhanced ? "enhanced" : "base",
			n->ports[0].lid, n->ports[0].lmc);
	fputc('\n', out);
}

/* An unwired port gets an alias that nobody uses, so that it can have a line. */
static void print_port(const struct topo *t, uint32_t number, unsigned p, FILE *out)
{
	const struct topo_node *n = &t->nodes[number];
	const struct topo_port *port = &n->ports[p];
	bool wired = port->peer != TOPO_NONE;

	fprintf(out, "%s[%u]", wired ? "" : "@", p);
	if (n->kind != TOPO_SWITCH)
		fprintf(out, "(%" PRIx64 ")", port->guid);
	if (wired)
		fprintf(out, "\t\"%s\"[%u]", t->nodes[port->peer].id, port->peer_port);
	else
		fprintf(out, "\t\"port %u of node %u\"", p, number);
	if (!same_caps(caps_of(port), caps_of_node(n)))
		fprintf(out, " w=%u s=%u e=%u", port->width, port->speed, port->ext_speed);
	if (n->kind != TOPO_SWITCH && (port->lid || port->lmc))
		fprintf(out, "\t# lid %u lmc %u", port->lid, port->lmc);
	fputc('\n', out);
}

void topo_print_net(const struct topo *t, FILE *out)
{
	struct topo_build defaults;
	struct topo_caps caps;

	topo_build_begin(&defaults);
	caps = defaults.caps;
	fprintf(out, "# %u nodes; weft-fabric(5)\n", t->n_nodes);
	for (uint32_t n = 0; n < t->n_nodes; n++) {
		const struct topo_node *node = &t->nodes[n];

		print_node(node, &caps, out);
		for (unsigned p = 1; p <= node->n_ports; p++)
			if (node->ports[p].peer != TOPO_NONE || !is_plain(node, p))
				print_port(t, n, p, out);
	}
}

/* ---- JSON ---- */

static json_t *hex(uint64_t v)
{
	return json_sprintf("0x%016" PRIx64, v);
}

static json_t *port_json(const struct topo_node *n, unsigned p)
{
	const struct topo_port *port = &n->ports[p];
	json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "port", p, "lid", port->lid, "lmc",
		port->lmc, "width", port->width, "speed", port->speed, "ext_speed",
		port->ext_speed);

	if (n->kind != TOPO_SWITCH || !p)
		json_object_set_new(o, "guid", hex(port->guid));
	if (port->peer != TOPO_NONE) {
		json_object_set_new(o, "peer", json_integer(port->peer));
		json_object_set_new(o, "peer_port", json_integer(port->peer_port));
	}
	return o;
}

static json_t *node_json(const struct topo *t, uint32_t number)
{
	const struct topo_node *n = &t->nodes[number];
	json_t *ports = json_array();

	for (unsigned p = n->kind == TOPO_SWITCH ? 0 : 1; p <= n->n_ports; p++)
		json_array_append_new(ports, port_json(n, p));
	return json_pack("{s:I, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:b, s:i, s:i, s:o}", "number",
		(json_int_t)number, "kind", topo_kind_name(n->kind), "id", n->id, "description",
		n->description, "guid", hex(n->guid), "system_guid", hex(n->system_guid), "vendor",
		(json_int_t)n->vendor, "device", (json_int_t)n->device, "enhanced", n->enhanced,
		"n_ports", n->n_ports, "wired", topo_wired(n), "ports", ports);
}

json_t *topo_json(const struct topo *t)
{
	json_t *nodes = json_array();

	for (uint32_t n = 0; n < t->n_nodes; n++)
		if (json_array_append_new(nodes, node_json(t, n))) {
			json_decref(nodes);
			return NULL;
		}
	return json_pack("{s:I, s:I, s:o}", "n_nodes", (json_int_t)t->n_nodes, "n_adapters",
		(json_int_t)t->n_cas, "nodes", nodes);
}

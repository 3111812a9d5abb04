// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/console_show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "fabric/walk.h"
#include "subnet/console_counter.h"
#include "subnet/console_say.h"
#include "subnet/state.h"

/* ---- Dump: what programs read stands where it stands in ibsim's ---- */

static const char *const kinds[] = {"", "Ca", "Switch", "Router"};
static const char *const states[] = {"-", "Down", "Init", "Armed", "Active"};
static const char *const physical[] = {
	"-", "Sleep", "Polling", "Disabled", "Training", "LinkUp", "ErrorRecovery"};

/* By mask of one bit, 0 before any training. */
static const char *const widths[] = {
	[0] = "  -", [1] = " 1x", [2] = " 4x", [4] = " 8x", [8] = "12x", [16] = " 2x"};
static const char *const speeds[] = {[0] = "    -", [1] = " 2.5G", [2] = " 5.0G", [4] = "10.0G"};
static const char *const ext_speeds[] = {
	[0] = "", [1] = " 14G", [2] = " 25G", [4] = " 50G", [8] = "100G", [32] = "200G"};

#define NAMED(names, i) ((i) < sizeof names / sizeof *names && names[i] ? names[i] : "?")

enum { PER_LINE = 16, COMMENT = 64 };

static void dump_table(struct console *c, const struct tables_node *n)
{
	const struct tables *t = subnet_tables(c->subnet);
	unsigned top = tables_load(&n->lft_top);

	for (unsigned from = 0; top && from <= top; from += PER_LINE) {
		unsigned to = from + PER_LINE - 1 < top ? from + PER_LINE - 1 : top;
		char line[PER_LINE * 12];
		int len = 0;

		for (unsigned lid = from; lid <= to; lid++)
			len += snprintf(line + len, sizeof line - len, " [%u]%X", lid,
				tables_route(t, n, lid));
		console_print(c, "#\tForwarding table %u-%u:%s\n", from, to, line);
	}
}

static void dump_switch(struct console *c, uint32_t node, bool whole)
{
	const struct tables_node *n = &subnet_tables(c->subnet)->nodes[node];

	console_print(c, "#\tlinearcap %d FDBtop %u portchange %u\n", TABLES_LIDS,
		tables_load(&n->lft_top), c->subnet->nodes[node].sw.port_state_change);
	if (whole)
		dump_table(c, n);
}

/* Where its link leads, while it is up. */
static void print_link(struct console *c, uint32_t port)
{
	const struct subnet *s = c->subnet;
	uint32_t peer = tables_load(&hot_at(s, port)->peer);
	unsigned num = port_at(s, port)->num;
	uint64_t guid = port_at(s, managed_by(s, port))->guid;

	if (!num)
		console_print(c, "%" PRIx64 "\t[0]\t\"Sma Port\"[0]", guid);
	else if (!peer)
		console_print(c, "%" PRIx64 "\t[%u]\t\t", guid, num);
	else
		console_print(c, "%" PRIx64 "\t[%u]\t\"%s\"[%u]", guid, num,
			console_id(c, hot_at(s, peer)->node), port_at(s, peer)->num);
}

static const char *comment(const struct port *p, char text[COMMENT])
{
	int n = 0;

	*text = '\0';
	if (p->error_percent)
		n = snprintf(text, COMMENT, "\t# err_rate %u", p->error_percent);
	if (p->error_attr)
		snprintf(text + n, COMMENT - n, "\t# err_attr %u", p->error_attr);
	return text;
}

static const char *speed_name(const struct port *p)
{
	if (p->ext_speed_active)
		return NAMED(ext_speeds, p->ext_speed_active);
	return p->fdr10_active ? "FDR10" : NAMED(speeds, p->speed_active);
}

static void dump_port(struct console *c, uint32_t port)
{
	const struct tables_port *h = hot_at(c->subnet, port);
	const struct port *p = port_at(c->subnet, port);
	char text[COMMENT];

	print_link(c, port);
	if (!is_external(c->subnet, port))
		console_print(c, "\t lid %u lmc %u smlid %u", tables_load(&h->lid),
			tables_load(&h->lmc), p->sm_lid);
	else
		console_print(c, "\t");
	console_print(c, " %s %s %s/%s%s\n", NAMED(widths, p->width_active), speed_name(p),
		NAMED(states, tables_load(&h->state)), NAMED(physical, p->phys), comment(p, text));
}

static void dump_node(struct console *c, uint32_t node, bool whole)
{
	const struct tables_node *t = &subnet_tables(c->subnet)->nodes[node];
	const struct node *n = &c->subnet->nodes[node];
	bool sw = is_switch(c->subnet, node);

	console_print(c, "\n%s %u \"%s\"\tnodeguid %" PRIx64 "\tsysimgguid %" PRIx64 "\n",
		NAMED(kinds, t->kind), t->n_ports, console_id(c, node), n->guid, n->system_guid);
	if (sw)
		dump_switch(c, node, whole);
	for (unsigned p = !sw; p <= t->n_ports; p++) {
		dump_port(c, t->port0 + p);
		if (whole)
			console_counters(c, node, p);
	}
}

int console_dump(struct console *c, const struct console_command *cmd)
{
	uint32_t n = c->subnet->t.head->n_nodes;

	console_print(c, "# Net status\n");
	if (cmd->at.there)
		dump_node(c, cmd->at.node, true);
	for (uint32_t i = 0; !cmd->at.there && i < n; i++)
		dump_node(c, i, false);
	console_print(c, "#  dumped %u nodes\n", cmd->at.there ? 1 : n);
	return 0;
}

/* ---- Route ---- */

static int find_lid(struct console *c, uint16_t lid, uint32_t *port)
{
	for (*port = 1; *port < c->subnet->t.head->n_ports; ++*port)
		if (tables_owns_lid(hot_at(c->subnet, *port), lid))
			return 0;
	return console_fail(c, -ENOENT, "no port has LID %u", lid);
}

static unsigned num_at(const struct console *c, uint32_t port)
{
	return port_at(c->subnet, port)->num;
}

static const char *id_at(const struct console *c, uint32_t port)
{
	return console_id(c, hot_at(c->subnet, port)->node);
}

/* What ends the way at a switch's or an adapter's port, in words. */
static const char *reason(enum walk_verdict why)
{
	switch (why) {
	case WALK_NO_VL:
		return "its SL has no lane";
	case WALK_MTU:
		return "it is too long";
	case WALK_PKEY_OUT:
		return "the P_Keys that are let out do not have its own";
	case WALK_PKEY_IN:
		return "the P_Keys that are let in do not have its own";
	default:
		return "the P_Key table does not have its own";
	}
}

static int not_there(struct console *c, const struct walk *w, uint16_t lid)
{
	unsigned p = num_at(c, w->at);
	const char *id = id_at(c, w->at);

	switch (w->verdict) {
	case WALK_ARRIVES:
		return 0;
	case WALK_NO_LINK:
	case WALK_NOT_READY:
		return console_fail(c, -ENOTCONN, "port %u of \"%s\" is %s, not Active", p, id,
			NAMED(states, tables_load(&hot_at(c->subnet, w->at)->state)));
	case WALK_NO_ROUTE:
		return console_fail(c, -ENOTCONN, "\"%s\" has no way to LID %u", id, lid);
	case WALK_BACK:
		return console_fail(c, -ENOTCONN,
			"\"%s\" sends LID %u back by port %u, by which it came", id, lid, p);
	case WALK_STRAY:
		return console_fail(c, -ENOTCONN, "\"%s\"[%u] has not LID %u", id, p, lid);
	case WALK_LOOP:
		return console_fail(c, -ENOTCONN, "no end after %d hops: a loop", WALK_HOPS);
	default:
		return console_fail(
			c, -ENOTCONN, "port %u of \"%s\" drops it: %s", p, id, reason(w->verdict));
	}
}

/* Where it came in last, or began. */
static uint32_t last_port(const struct walk *w, uint32_t from)
{
	return w->hops ? w->hop[w->hops - 1].in : from;
}

int console_route(struct console *c, const struct console_command *cmd)
{
	struct walk_packet p = {.dlid = cmd->number[1]};
	uint16_t from = cmd->number[0];
	struct walk w;
	uint32_t end;
	int rc = find_lid(c, from, &p.port);

	rc = rc ? rc : find_lid(c, p.dlid, &end);
	if (rc)
		return rc;
	p.sl = cmd->n_numbers > 2 ? cmd->number[2] : 0;
	p.pkey = cmd->n_numbers > 3 ? cmd->number[3] : 0;
	walk(&c->subnet->t, &p, &w);
	console_print(
		c, "From node \"%s\" port %u lid %u\n", id_at(c, p.port), num_at(c, p.port), from);
	for (unsigned i = 0; i < w.hops; i++)
		console_print(c, "[%u] -> \"%s\"[%u]\n", num_at(c, w.hop[i].out),
			id_at(c, w.hop[i].in), num_at(c, w.hop[i].in));
	if (w.verdict != WALK_ARRIVES)
		return not_there(c, &w, p.dlid);
	end = last_port(&w, p.port);
	console_print(c, "To node \"%s\" port %u lid %u\n", id_at(c, end), num_at(c, end), p.dlid);
	return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
/* weft topo: what a topology is made of. */
#include "cli/topo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/fabric.h"
#include "cli/common/say.h"
#include "cli/topo_live.h"
#include "topo/draw.h"
#include "topo/load.h"
#include "topo/print.h"

enum {
	KEY_NET = 256,
	KEY_JSON,
	KEY_DOT,
	KEY_SVG,
	KEY_DO,
	KEY_ROUTE,
	COLUMNS = 9,
	CELL = TOPO_TEXT_MAX + 1,
	COMMANDS = 256
};

struct topo_options {
	const char *what;
	int form; /* a KEY_, 0: the table */
	const char *fabric;
	const char *from; /* of a route, to what */
	const char *commands[COMMANDS];
	unsigned n_commands;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct topo_options *o = state->input;

	switch (key) {
	case KEY_NET:
	case KEY_JSON:
	case KEY_DOT:
	case KEY_SVG:
		if (o->form && o->form != key)
			cli_usage(state, "one of --net, --json, --dot and --svg");
		o->form = key;
		return 0;
	case KEY_DO:
		if (o->n_commands == COMMANDS)
			cli_usage(state, "more than %d commands; use --do -", COMMANDS);
		o->commands[o->n_commands++] = arg;
		return 0;
	case KEY_ROUTE:
		o->from = arg;
		return 0;
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->fabric;
		return 0;
	case ARGP_KEY_ARG:
		if (o->what)
			cli_usage(state, "one FILE, SPEC or destination; '%s' is another", arg);
		o->what = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->from && (!o->what || o->form || o->n_commands))
			cli_usage(state, "a route is --route FROM TO, and nothing else");
		if (o->what && !o->from && (o->fabric || o->n_commands))
			cli_usage(state, "a FILE or SPEC is no fabric that runs");
		if (o->n_commands && o->form)
			cli_usage(state, "--do prints what the command does");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- the table ---- */

enum { COLUMN_LID = 5, COLUMN_STATE, COLUMN_PORTS };

static const char *const heads[COLUMNS] = {
	"number", "kind", "id", "description", "GUID", "LID", "state", "ports", "links"};

/* What a table is made of; live: NULL of a topology that does not run. */
struct table {
	const struct topo *topo;
	const json_t *live;
};

static bool has_column(const struct table *t, int c)
{
	return t->live || (c != COLUMN_LID && c != COLUMN_STATE);
}

/* All that is printed of a topology is printable: who reads or makes one sees to that. */
static void fill_row(const struct table *t, uint32_t n, char cells[COLUMNS][CELL])
{
	const struct topo_node *node = &t->topo->nodes[n];

	snprintf(cells[0], CELL, "%u", n);
	snprintf(cells[1], CELL, "%s", topo_kind_name(node->kind));
	snprintf(cells[2], CELL, "%s", node->id);
	snprintf(cells[3], CELL, "%s", node->description);
	snprintf(cells[4], CELL, "0x%016" PRIx64, node->guid);
	topo_live_lids(t->live, n, cells[COLUMN_LID], CELL);
	topo_live_states(t->live, n, cells[COLUMN_STATE], CELL);
	snprintf(cells[COLUMN_PORTS], CELL, "%u", node->n_ports);
	snprintf(cells[COLUMN_PORTS + 1], CELL, "%u", topo_wired(node));
}

/* How many columns of a terminal a text takes, if each character takes one. */
static int columns(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void print_row(
	const struct table *t, const char *const cells[COLUMNS], const int width[COLUMNS])
{
	for (int c = 0; c < COLUMNS; c++) {
		bool number = c == 0 || c >= COLUMN_PORTS;
		int pad = width[c] - columns(cells[c]);

		if (!has_column(t, c))
			continue;
		printf("%s%*s%s%*s", c ? "  " : "", number ? pad : 0, "", cells[c],
			number || c == COLUMNS - 1 ? 0 : pad, "");
	}
	putchar('\n');
}

static void print_summary(const struct topo *t)
{
	unsigned of[TOPO_ROUTER + 1] = {0}, wired = 0;

	for (uint32_t n = 0; n < t->n_nodes; n++) {
		of[t->nodes[n].kind]++;
		wired += topo_wired(&t->nodes[n]);
	}
	printf("adapters: %u, switches: %u, routers: %u, links: %u\n", of[TOPO_CA], of[TOPO_SWITCH],
		of[TOPO_ROUTER], wired / 2);
}

static void print_table(const struct table *t)
{
	char cells[COLUMNS][CELL];
	const char *row[COLUMNS];
	int width[COLUMNS];

	for (int c = 0; c < COLUMNS; c++) {
		row[c] = cells[c];
		width[c] = columns(heads[c]);
	}
	for (uint32_t n = 0; n < t->topo->n_nodes; n++) {
		fill_row(t, n, cells);
		for (int c = 0; c < COLUMNS; c++)
			if (columns(cells[c]) > width[c])
				width[c] = columns(cells[c]);
	}
	print_row(t, heads, width);
	for (uint32_t n = 0; n < t->topo->n_nodes; n++) {
		fill_row(t, n, cells);
		print_row(t, row, width);
	}
	print_summary(t->topo);
}

/* ---- the command ---- */

static int print_json(const struct topo *t)
{
	json_t *o = topo_json(t);
	int rc = o ? json_dumpf(o, stdout, JSON_INDENT(2)) : -1;

	json_decref(o);
	putchar('\n');
	return rc && !ferror(stdout) ? cli_fail("out of memory") : EXIT_OK;
}

static int print_form(const struct topo *t, int form)
{
	switch (form) {
	case KEY_NET:
		topo_print_net(t, stdout);
		return EXIT_OK;
	case KEY_JSON:
		return print_json(t);
	case KEY_DOT:
	case KEY_SVG:
		return (form == KEY_DOT ? topo_draw_dot : topo_draw_svg)(t, stdout)
			       ? cli_fail("out of memory")
			       : EXIT_OK;
	default:
		print_table(&(struct table){.topo = t});
		return EXIT_OK;
	}
}

static int print_live(const struct topo_options *o)
{
	json_t *live;
	struct netlist n;
	char *text;
	int rc;

	if (o->form == KEY_JSON || o->form == KEY_NET) {
		rc = topo_live_text(
			o->fabric, o->form == KEY_JSON ? PROTO_TOPO_JSON : PROTO_TOPO_NET, &text);
		if (rc)
			return rc;
		fputs(text, stdout);
		free(text);
		return EXIT_OK;
	}
	rc = topo_live_load(o->fabric, &n, &live);
	if (rc)
		return rc;
	if (o->form)
		rc = print_form(&n.topo, o->form);
	else
		print_table(&(struct table){&n.topo, live});
	json_decref(live);
	netlist_free(&n);
	return rc;
}

static int print_file(const struct topo_options *o)
{
	char error[TOPO_ERROR];
	struct netlist n;
	int rc;

	if (topo_load(&n, o->what, error))
		return cli_fail("%s", error);
	rc = print_form(&n.topo, o->form);
	netlist_free(&n);
	return rc;
}

static const struct argp_child fabric_child[] = {{&cli_fabric_option_argp, 0, NULL, 0}, {0}};

int cmd_topo(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"net", KEY_NET, NULL, 0, "print a netlist, from which nothing is left out", 0},
		{"json", KEY_JSON, NULL, 0, "print one JSON object, for programs", 0},
		{"dot", KEY_DOT, NULL, 0, "print a graph, for Graphviz", 0},
		{"svg", KEY_SVG, NULL, 0, "print a picture", 0},
		{"do", KEY_DO, "COMMAND", 0,
			"carry out a command in a running fabric; '-': those of standard input", 0},
		{"route", KEY_ROUTE, "FROM", 0,
			"print the way from node FROM to node TO of a running fabric, and back", 0},
		{0}};
	static const struct argp argp = {.options = options,
		.parser = parse,
		.args_doc = "[FILE|SPEC|TO]",
		.doc = "Shows a topology: its nodes, their ports, and how they are wired; without "
		       "FILE and SPEC that of a running fabric, with LIDs and states.\v"
		       "FILE is a netlist of ibsim or the output of ibnetdiscover, '-' standard "
		       "input.  SPEC is ib:N, ft2:RADIX,LEAVES,SPINES, ft3:K, "
		       "torus:XxYxZ[,HOSTS] or dragonfly:P,A,H.  See weft-topo(1) and "
		       "weft-fabric(5).",
		.children = fabric_child};
	struct topo_options o = {0};
	int rc = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (o.from)
		rc = topo_live_route(o.fabric, o.from, o.what);
	else if (o.n_commands)
		for (unsigned i = 0; !rc && i < o.n_commands; i++)
			rc = topo_live_do(o.fabric, o.commands[i]);
	else
		rc = o.what ? print_file(&o) : print_live(&o);
	return rc ? rc : cli_written();
}

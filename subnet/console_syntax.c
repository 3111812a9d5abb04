// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/console_syntax.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "subnet/console_say.h"
#include "topo/build.h"

enum argument_kind {
	ARG_END,
	ARG_NODE,  /* "id" */
	ARG_PORTS, /* "id" or "id"[port] */
	ARG_PORT,  /* "id"[port] */
	ARG_NUMBER,
	ARG_COUNTER /* the rest of the line */
};

struct argument {
	enum argument_kind kind;
	bool optional;
	bool hex;             /* as it is written */
	uint64_t least, most; /* of a port: the first one of a switch */
	const char *name;
};

enum { ARGUMENTS = 4 };

struct syntax {
	const char *word, *usage, *help;
	unsigned what;
	bool kept; /* it outlasts the subnet */
	struct argument args[ARGUMENTS + 1];
};

#define PORT_FROM(n)                                                                               \
	{                                                                                          \
		ARG_PORT, false, false, n, 0, NULL                                                 \
	}
#define PORTS_FROM(n)                                                                              \
	{                                                                                          \
		ARG_PORTS, false, false, n, 0, NULL                                                \
	}
#define NUMBER(name, least, most)                                                                  \
	{                                                                                          \
		ARG_NUMBER, false, false, least, most, name                                        \
	}
#define OPTIONAL(name, least, most)                                                                \
	{                                                                                          \
		ARG_NUMBER, true, false, least, most, name                                         \
	}

enum { LID_LAST = TOPO_UNICAST_LIDS, LMC_LAST = 7, SL_LAST = 15, SECONDS = 86400 };

/* A word may be cut short; then it is the first one here that begins so. */
static const struct syntax commands[] = {
	{"Dump", "[\"id\"]", "shows all nodes, or one with its tables and counters", CONSOLE_DUMP,
		false, {{ARG_NODE, true, false, 0, 0, NULL}}},
	{"Route", "from-LID to-LID [sl [P_Key]]", "shows the way by the forwarding tables",
		CONSOLE_ROUTE, false,
		{NUMBER("from-LID", 1, LID_LAST), NUMBER("to-LID", 1, LID_LAST),
			OPTIONAL("sl", 0, SL_LAST), OPTIONAL("P_Key", 1, UINT16_MAX)}},
	{"Link", "\"id\"[port] \"id\"[port]", "wires two ports", CONSOLE_LINK, true,
		{PORT_FROM(1), PORT_FROM(1)}},
	{"Unlink", "\"id\"[[port]]", "pulls a port's cable, or all of a node", CONSOLE_UNLINK, true,
		{PORTS_FROM(1)}},
	{"Clear", "\"id\"[[port]]", "pulls it and forgets what an SM has set", CONSOLE_CLEAR, true,
		{PORTS_FROM(1)}},
	{"Guid", "\"id\"[[port]] guid", "gives a node or an adapter's port a GUID", CONSOLE_GUID,
		true, {PORTS_FROM(0), {ARG_NUMBER, false, true, 1, UINT64_MAX, "guid"}}},
	{"Error", "\"id\"[[port]] rate [attribute]", "loses that percentage of MADs",
		CONSOLE_LOSSES, true,
		{PORTS_FROM(1), NUMBER("rate", 0, 100), OPTIONAL("attribute", 0, UINT16_MAX)}},
	{"Baselid", "\"id\"[port] lid [lmc]", "gives a port a LID", CONSOLE_BASELID, true,
		{PORT_FROM(0), NUMBER("lid", 1, LID_LAST), OPTIONAL("lmc", 0, LMC_LAST)}},
	{"Start", "", "nothing: a subnet runs when it is there", CONSOLE_START, false, {{0}}},
	{"Verbose", "[level]", "shows or sets how much is logged", CONSOLE_VERBOSE, false,
		{OPTIONAL("level", 0, 9)}},
	{"Wait", "seconds", "before the next command", CONSOLE_WAIT, false,
		{NUMBER("seconds", 1, SECONDS)}},
	{"Attached", "", "lists the clients", CONSOLE_ATTACHED, false, {{0}}},
	{"X", "client", "cuts a client off", CONSOLE_X, false, {NUMBER("client", 0, UINT32_MAX)}},
	{"Help", "", "this", CONSOLE_HELP, false, {{0}}},
	{"?", "", "this", CONSOLE_HELP, false, {{0}}},
	{"Quit", "", "ends the fabric", CONSOLE_QUIT, false, {{0}}},
	{"ReLink", "\"id\"[[port]]", "plugs a pulled cable in again", CONSOLE_RELINK, true,
		{PORTS_FROM(1)}},
	{"PerformanceSet", "\"id\"[port] attribute.field=value", "sets a counter", CONSOLE_COUNTER,
		false, {PORT_FROM(0), {ARG_COUNTER, false, false, 0, 0, NULL}}},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct syntax *syntax_of(unsigned what)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].what == what)
			return &commands[i];
	return NULL;
}

static int misused(struct console *c, const struct syntax *s)
{
	return console_fail(c, -EINVAL, "it is: %s%s%s", s->word, *s->usage ? " " : "", s->usage);
}

int console_misused(struct console *c, unsigned what)
{
	return misused(c, syntax_of(what));
}

void console_help(struct console *c)
{
	char text[CONSOLE_SHOWN];

	for (size_t i = 0; i < COMMANDS; i++) {
		snprintf(text, sizeof text, "%s %s", commands[i].word, commands[i].usage);
		console_print(c, "  %-46s %s\n", text, commands[i].help);
	}
	console_print(c, "  %-46s %s\n", "# text", "a comment");
}

/* ---- arguments ---- */

/* A node, or the port that is meant by an alias. */
static int find_name(struct console *c, struct slice name, struct console_place *at)
{
	char text[TOPO_TEXT_MAX + 1] = "", shown[CONSOLE_SHOWN];
	const struct topo_alias *alias;

	if (name.len <= TOPO_TEXT_MAX)
		memcpy(text, name.p, name.len);
	at->node = topo_find(c->topo, text);
	if (at->node != TOPO_NONE)
		return 0;
	alias = topo_find_alias(c->topo, text);
	if (!alias)
		return console_fail(c, -ENOENT, "there is no %s \"%s\"",
			memchr(name.p, '@', name.len) ? "alias" : "node",
			console_shown(shown, name));
	*at = (struct console_place){alias->node, alias->port, true, true};
	return 0;
}

static int take_port(
	struct console *c, const struct argument *a, struct lex *l, struct console_place *at)
{
	const struct topo_node *n = &c->topo->nodes[at->node];
	uint64_t p, least = n->kind == TOPO_SWITCH ? a->least : 1;

	if (!lex_number(l, UINT32_MAX, &p) || !lex_eat(l, ']'))
		return console_fail(c, -EINVAL, "a port is \"id\"[N]");
	if (p < least || p > n->n_ports)
		return console_fail(c, -ENOENT, "there is no port %llu at \"%s\": %llu to %u are",
			(unsigned long long)p, n->id, (unsigned long long)least, n->n_ports);
	at->port = p;
	at->one = true;
	return 0;
}

static int take_place(struct console *c, const struct syntax *s, const struct argument *a,
	struct lex *l, struct console_place *at)
{
	struct slice name;
	int rc;

	if (!lex_quoted(l, &name))
		return misused(c, s);
	rc = find_name(c, name, at);
	if (rc)
		return rc;
	at->there = true;
	if (a->kind != ARG_NODE && !at->one && lex_eat(l, '['))
		return take_port(c, a, l, at);
	return a->kind == ARG_PORT && !at->one ? misused(c, s) : 0;
}

static bool ends_here(const struct lex *l)
{
	return l->p == l->end || *l->p == ' ' || *l->p == '\t';
}

static int take_number(
	struct console *c, const struct argument *a, struct lex *l, struct console_command *cmd)
{
	uint64_t *v = &cmd->number[cmd->n_numbers];

	if (!lex_number(l, a->most, v) || !ends_here(l) || *v < a->least)
		return console_fail(c, -EINVAL, "%s is a number from %llu to %llu", a->name,
			(unsigned long long)a->least, (unsigned long long)a->most);
	cmd->n_numbers++;
	return 0;
}

static int take_argument(struct console *c, const struct syntax *s, const struct argument *a,
	struct lex *l, struct console_command *cmd)
{
	switch (a->kind) {
	case ARG_NUMBER:
		return take_number(c, a, l, cmd);
	case ARG_COUNTER:
		cmd->counter = (struct slice){l->p, l->end - l->p};
		l->p = l->end;
		return 0;
	default:
		return take_place(c, s, a, l, cmd->at.there ? &cmd->peer : &cmd->at);
	}
}

static int take_arguments(
	struct console *c, const struct syntax *s, struct lex *l, struct console_command *cmd)
{
	int rc = 0;

	cmd->what = s->what;
	for (const struct argument *a = s->args; !rc && a->kind != ARG_END; a++) {
		if (lex_blank(l))
			rc = take_argument(c, s, a, l, cmd);
		else if (!a->optional)
			return misused(c, s);
	}
	return !rc && lex_blank(l) ? misused(c, s) : rc;
}

/* ---- lines ---- */

static const struct syntax *find_command(struct slice word)
{
	for (size_t i = 0; word.len && i < COMMANDS; i++)
		if (word.len <= strlen(commands[i].word) &&
			!strncasecmp(word.p, commands[i].word, word.len))
			return &commands[i];
	return NULL;
}

static struct slice first_word(struct lex *l)
{
	struct slice word = {l->p, 0};

	while (!ends_here(l))
		l->p++;
	word.len = l->p - word.p;
	return word;
}

static int parse_words(struct console *c, struct lex *l, struct console_command *cmd)
{
	char shown[CONSOLE_SHOWN];
	const struct syntax *s;
	struct slice word;

	if (!lex_blank(l) || *l->p == '#')
		return 0;
	if (*l->p == '!')
		return console_fail(
			c, -EOPNOTSUPP, "no file is read here: give its lines to weft topo --do -");
	word = first_word(l);
	s = find_command(word);
	if (!s)
		return console_fail(c, -EINVAL, "there is no command '%s'; Help lists them",
			console_shown(shown, word));
	return take_arguments(c, s, l, cmd);
}

int console_parse(struct console *c, const char *line, size_t len, struct console_command *out)
{
	struct lex l = {line, line + len};

	*out = (struct console_command){.what = CONSOLE_NOTHING};
	while (l.end > l.p && (l.end[-1] == '\n' || l.end[-1] == '\r'))
		l.end--;
	if (memchr(l.p, '\0', l.end - l.p) || memchr(l.p, '\n', l.end - l.p))
		return console_fail(c, -EINVAL, "a command is one line of text");
	return parse_words(c, &l, out);
}

/* ---- the way back ---- */

static int write_place(
	const struct console *c, const struct console_place *at, char *out, size_t size)
{
	if (!at->one)
		return snprintf(out, size, " \"%s\"", console_id(c, at->node));
	return snprintf(out, size, " \"%s\"[%u]", console_id(c, at->node), at->port);
}

int console_write(
	const struct console *c, const struct console_command *cmd, char out[CONSOLE_LINE])
{
	const struct syntax *s = syntax_of(cmd->what);
	int n = 0;

	*out = '\0';
	if (!s || !s->kept)
		return 0;
	n += snprintf(out, CONSOLE_LINE, "%s", s->word);
	n += write_place(c, &cmd->at, out + n, CONSOLE_LINE - n);
	if (cmd->peer.there)
		n += write_place(c, &cmd->peer, out + n, CONSOLE_LINE - n);
	for (unsigned i = 0; i < cmd->n_numbers; i++)
		n += snprintf(out + n, CONSOLE_LINE - n, s->args[1 + i].hex ? " 0x%llx" : " %llu",
			(unsigned long long)cmd->number[i]);
	return n;
}

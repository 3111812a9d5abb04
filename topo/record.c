// SPDX-License-Identifier: BSD-3-Clause
#include "topo/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LMC_MAX = 7 };

/* ---- what stands behind a node or a port ---- */

/* A link's speed as ibnetdiscover(8) names the active one, and what such a port can do. */
static const struct {
	const char *name;
	uint8_t speed, ext_speed;
} speeds[] = {
	{"SDR", 1, 0},
	{"DDR", 3, 0},
	{"QDR", 7, 0},
	{"FDR10", 15, 0},
	{"FDR", 15, 1},
	{"EDR", 15, 3},
	{"HDR", 15, 7},
	{"NDR", 15, 15},
	{"XDR", 15, 47},
};

static const struct {
	uint8_t lanes, mask;
} widths[] = {{1, 1}, {2, 16}, {4, 3}, {8, 4}, {12, 11}};

/* What a line says behind its names. */
struct tail {
	struct topo_port *caps;  /* the port that widths and speeds are of, or NULL */
	struct topo_port *owner; /* the one that lid and lmc are of, or NULL */
	bool quoted;             /* a description has come: a lid behind it is the peer's */
	bool node;               /* of a node: it is its own everywhere */
	bool rated;              /* 4xQDR has come, which outdoes the options */
};

/* 4xQDR and the like; anything else is left alone. */
static int take_rate(struct reader *r, struct slice word, struct tail *t)
{
	struct topo_port *port = t->caps;
	struct lex l = {word.p, word.p + word.len};
	struct slice name;
	uint64_t lanes;

	if (!port || !lex_number(&l, 99, &lanes) || !lex_eat(&l, 'x'))
		return 0;
	name = (struct slice){l.p, l.end - l.p};
	if (!name.len || *name.p < 'A' || *name.p > 'Z')
		return 0; /* words of a comment */
	for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
		for (size_t s = 0; s < sizeof speeds / sizeof *speeds; s++)
			if (lanes == widths[w].lanes && slice_is(name, speeds[s].name)) {
				t->rated = true;
				port->width = widths[w].mask;
				port->speed = speeds[s].speed;
				port->ext_speed = speeds[s].ext_speed;
				return 0;
			}
	return reader_fail(
		r, "'%.*s' is no width and speed that is known", slice_width(word), word.p);
}

/* w=, s= and e=; ibnetdiscover has others, which are left alone. */
static int take_option(struct reader *r, struct slice word, struct topo_port *port)
{
	static const char keys[] = "wse";
	const char *key = word.len > 2 && word.p[1] == '=' ? strchr(keys, *word.p) : NULL;
	const uint8_t most[] = {TOPO_WIDTHS, TOPO_SPEEDS, TOPO_EXT_SPEEDS}, least[] = {1, 0, 0};
	struct lex l = {word.p, word.p + word.len};
	const char name[] = {*word.p, '=', '\0'};
	uint64_t v;
	int k;

	if (!port || !key)
		return 0;
	l.p += 2;
	k = key - keys;
	if (!lex_number(&l, most[k], &v) || l.p != l.end || v < least[k])
		return reader_fail(r, "'%s' wants a number from %d to %d", name, least[k], most[k]);
	if (reader_check_mask(r, name, v, most[k]))
		return -EINVAL;
	if (k == 0)
		port->width = v;
	else if (k == 1) /* 0, of ibnetdiscover -f: faster than QDR alone */
		port->speed = v ? topo_speeds(v) : TOPO_QDR;
	else
		port->ext_speed = v;
	return 0;
}

static int take_lid(struct reader *r, struct slice word, struct lex *l, struct tail *t)
{
	bool lmc = slice_is(word, "lmc");
	struct lex number = *l;
	uint64_t v;

	lex_blank(&number);
	if (!t->owner || (t->quoted && !t->node) || !lex_number(&number, UINT64_MAX, &v))
		return 0;
	if (v > (lmc ? LMC_MAX : TOPO_UNICAST_LIDS))
		return reader_fail(r, "%s %llu is above %d", lmc ? "LMC" : "LID",
			(unsigned long long)v, lmc ? LMC_MAX : TOPO_UNICAST_LIDS);
	*l = number;
	if (lmc)
		t->owner->lmc = v;
	else
		t->owner->lid = v;
	return 0;
}

static struct slice next_word(struct lex *l)
{
	struct slice word = {l->p, 0};

	while (l->p < l->end && *l->p != ' ' && *l->p != '\t' && *l->p != '"')
		l->p++;
	word.len = l->p - word.p;
	return word;
}

static int take_tail(struct reader *r, struct lex *l, struct tail t)
{
	struct slice word;
	int rc = 0;

	while (!rc && lex_blank(l)) {
		if (lex_quoted(l, &word)) {
			t.quoted = true;
			continue;
		}
		if (lex_eat(l, '"'))
			return reader_fail(r, "a quote that does not end");
		word = next_word(l);
		if (slice_is(word, "lid") || slice_is(word, "lmc"))
			rc = take_lid(r, word, l, &t);
		else if (!(rc = take_rate(r, word, &t)) && !t.rated)
			rc = take_option(r, word, t.caps);
	}
	return rc;
}

/* ---- nodes ---- */

/* Where a description without quotes ends. */
static bool is_keyword(struct lex l)
{
	static const char *const keywords[] = {" enhanced port ", " base port ", " lid ", " lmc "};

	for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
		if (lex_eat_text(&l, keywords[i]))
			return true;
	return false;
}

/* # "DESCRIPTION", or without quotes; empty if there is none. */
static int take_description(struct reader *r, struct lex *l, struct slice *d)
{
	*d = (struct slice){l->p, 0};
	lex_blank(l);
	if (!lex_eat(l, '#') || !lex_blank(l))
		return 0;
	if (!lex_quoted(l, d)) {
		d->p = l->p--; /* perhaps there is none: the blank is a keyword's */
		while (l->p < l->end && !is_keyword(*l))
			l->p++;
		d->len = l->p < d->p ? 0 : l->p - d->p;
		while (d->len && (d->p[d->len - 1] == ' ' || d->p[d->len - 1] == '\t'))
			d->len--;
	}
	if (!slice_is_plain(*d) || memchr(d->p, '"', d->len))
		return reader_fail(r, "a description has at most %d printable bytes, no quotes",
			TOPO_TEXT_MAX);
	return 0;
}

static int take_switch_port(struct reader *r, struct topo_node *node, struct lex *l)
{
	struct lex find = *l;

	for (; find.p < find.end; find.p++)
		if (lex_eat_text(&find, "enhanced port 0")) {
			node->enhanced = true;
			break;
		}
	return take_tail(r, l, (struct tail){.owner = &node->ports[0], .node = true});
}

static int keep_place(struct reader *r, uint32_t node)
{
	uint32_t room = r->nodes_room ? 2 * r->nodes_room : 64;
	struct place *nodes;

	if (node >= r->nodes_room) {
		nodes = reallocarray(r->nodes, room, sizeof *nodes);
		if (!nodes)
			return -ENOMEM;
		r->nodes = nodes;
		r->nodes_room = room;
	}
	r->nodes[node] = r->at;
	return 0;
}

/* The new node's name, which no other has; it may hold a '#' (a whole name), but no '@'. */
static int take_id(struct reader *r, struct lex *l, struct name **name)
{
	struct slice id;
	uint32_t n;
	int rc;

	lex_blank(l);
	if (!lex_quoted(l, &id))
		return reader_fail(r, "a node wants a number of ports and an id in quotes");
	if (memchr(id.p, '@', id.len))
		return reader_fail(r, "'@' in an id is for aliases");
	rc = reader_name(r, id, &n);
	if (rc)
		return rc;
	*name = &r->names.list[n];
	if ((*name)->node != TOPO_NONE)
		return reader_fail(r, "there is a node \"%s\" already (line %u of %.100s)",
			(*name)->text, r->nodes[(*name)->node].line,
			r->files[r->nodes[(*name)->node].file]);
	return 0;
}

static int add_node(struct reader *r, enum topo_kind kind, unsigned ports, struct name *name,
	struct slice description)
{
	char text[TOPO_TEXT_MAX + 1];
	int rc;

	memcpy(text, description.p, description.len);
	text[description.len] = '\0';
	rc = topo_build_node(&r->build, kind, ports, name->text, text, &r->record);
	if (rc == -ENOSPC)
		return reader_fail(r, "too many nodes: a subnet has %d LIDs", TOPO_UNICAST_LIDS);
	rc = rc ? rc : keep_place(r, r->record);
	if (rc)
		return rc;
	name->node = r->record;
	r->build.vendor = 0; /* devid stays, as it does in ibsim */
	r->build.system_guid = 0;
	return 0;
}

int record_node(struct reader *r, enum topo_kind kind, struct lex *l)
{
	struct slice description;
	struct name *name = NULL;
	uint64_t ports;
	int rc;

	if (!lex_number(l, TOPO_MAX_PORTS, &ports) || !ports)
		return reader_fail(r, "a node has 1 to %d ports", TOPO_MAX_PORTS);
	rc = take_id(r, l, &name);
	rc = rc ? rc : take_description(r, l, &description);
	rc = rc ? rc : add_node(r, kind, ports, name, description);
	if (!rc && kind == TOPO_SWITCH)
		rc = take_switch_port(r, &r->build.topo.nodes[r->record], l);
	return rc;
}

/* ---- ports ---- */

static bool take_bracket(struct lex *l, uint64_t max, uint64_t *n)
{
	return lex_eat(l, '[') && lex_number(l, max, n) && lex_eat(l, ']');
}

/* [ext 3], of the switches in a chassis, and (GUID); whether a GUID was there. */
static bool take_notes(struct lex *l, uint64_t *guid)
{
	const char *end;
	struct lex at;

	lex_blank(l);
	if (l->p < l->end && *l->p == '[' && (end = memchr(l->p, ']', l->end - l->p)))
		l->p = end + 1;
	lex_blank(l);
	at = *l;
	if (!lex_eat(&at, '(') || !lex_hex(&at, guid) || !lex_eat(&at, ')'))
		return false;
	*l = at;
	return true;
}

static int keep_link(struct reader *r, struct link link)
{
	uint32_t room = r->links_room ? 2 * r->links_room : 256;
	struct link *links;

	if (r->n_links == r->links_room) {
		links = reallocarray(r->links, room, sizeof *links);
		if (!links)
			return -ENOMEM;
		r->links = links;
		r->links_room = room;
	}
	r->links[r->n_links++] = link;
	return 0;
}

static int take_alias(struct reader *r, struct slice text, unsigned p)
{
	char alias[TOPO_TEXT_MAX + 2];
	struct name *name;
	uint32_t n;
	int rc;

	if (!text.len || text.len >= TOPO_TEXT_MAX || memchr(text.p, '#', text.len) ||
		memchr(text.p, '@', text.len))
		return reader_fail(
			r, "an alias has 1 to %d bytes, no '#' and no '@'", TOPO_TEXT_MAX - 1);
	alias[0] = '@';
	memcpy(alias + 1, text.p, text.len);
	rc = reader_name(r, (struct slice){alias, text.len + 1}, &n);
	if (rc)
		return rc;
	name = &r->names.list[n];
	if (name->node != TOPO_NONE)
		return reader_fail(r, "there is an alias \"%s\" already", name->text);
	name->node = r->record;
	name->port = p;
	return 0;
}

/* The other end: "NAME"[M], port 1 if none is said.  Until all is read, peer is the name. */
static int take_peer(struct reader *r, struct slice text, struct lex *l, unsigned p)
{
	struct link link = {.place = r->at, .node = r->record, .port = p};
	struct topo_port *port = &r->build.topo.nodes[r->record].ports[p];
	uint64_t peer_port = 1;
	int rc;

	if (l->p < l->end && *l->p == '[' &&
		(!take_bracket(l, TOPO_MAX_PORTS, &peer_port) || !peer_port))
		return reader_fail(r, "a port's number is 1 to %d", TOPO_MAX_PORTS);
	rc = reader_name(r, text, &link.name);
	if (rc)
		return rc;
	if (port->peer != TOPO_NONE)
		return reader_fail(r, "port %u is wired already", p);
	link.alias = memchr(text.p, '@', text.len);
	link.peer_port = peer_port;
	port->peer = link.name;
	return keep_link(r, link);
}

/* [N], and perhaps its GUID. */
static int take_number(struct reader *r, const struct topo_node *node, struct lex *l, uint64_t *p)
{
	uint64_t guid;

	if (!take_bracket(l, UINT32_MAX, p) || !*p)
		return reader_fail(r, "a port is [N], from 1");
	if (*p > node->n_ports)
		return reader_fail(r, "port %llu of \"%s\", which has %u", (unsigned long long)*p,
			node->id, node->n_ports);
	if (take_notes(l, &guid) && node->kind != TOPO_SWITCH)
		node->ports[*p].guid = guid;
	return 0;
}

int record_port(struct reader *r, struct lex *l)
{
	bool alias = lex_eat(l, '@');
	struct topo_port *port;
	struct topo_node *node;
	struct slice text;
	uint64_t p, guid;
	int rc;

	if (r->record == TOPO_NONE)
		return reader_fail(r, "a port without a node: is the line of its node above?");
	node = &r->build.topo.nodes[r->record];
	rc = take_number(r, node, l, &p);
	if (rc)
		return rc;
	port = &node->ports[p];
	lex_blank(l);
	if (!lex_quoted(l, &text))
		return reader_fail(r, "port %u wants a name in quotes", (unsigned)p);
	rc = alias ? take_alias(r, text, p) : take_peer(r, text, l, p);
	if (rc)
		return rc;
	take_notes(l, &guid);
	return take_tail(r, l,
		(struct tail){.caps = port, .owner = node->kind == TOPO_SWITCH ? NULL : port});
}

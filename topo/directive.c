// SPDX-License-Identifier: BSD-3-Clause
#include "topo/directive.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "topo/record.h"

struct directive {
	const char *word;
	int (*take)(struct reader *r, const struct directive *d, struct lex *l);
	unsigned
		what; /* of nodes: the kind; of numbers: the greatest, of masks with all its bits */
	unsigned least;
	size_t offset; /* of the byte or word in struct reader */
};

static int take_node(struct reader *r, const struct directive *d, struct lex *l)
{
	return record_node(r, d->what, l);
}

/* =BASE, or +N: N behind the last base.  What ibnetdiscover has behind it is port 0's GUID. */
static int take_guids(struct reader *r, const struct directive *d, struct lex *l)
{
	struct topo_guids *guids = &r->build.guids[d->what];
	bool relative = lex_eat(l, '+');
	uint64_t v;

	if (!relative && !lex_eat(l, '='))
		return reader_fail(r, "'%s' wants '=' or '+' and a GUID", d->word);
	lex_blank(l);
	if (!lex_number(l, UINT64_MAX, &v))
		return reader_fail(r, "'%s' wants a GUID of at most 64 bits", d->word);
	if (!relative)
		guids->base = v;
	guids->next = relative ? guids->base + v : v;
	return 0;
}

static int take_number(
	struct reader *r, const struct directive *d, struct lex *l, uint64_t max, uint64_t *v)
{
	if (!lex_eat(l, '='))
		return reader_fail(r, "'%s' wants '=' and a number", d->word);
	lex_blank(l);
	if (!lex_number(l, max, v) || *v < d->least)
		return reader_fail(r, "'%s' wants a number from %u to %llu", d->word, d->least,
			(unsigned long long)max);
	return 0;
}

static int take_mask(struct reader *r, const struct directive *d, struct lex *l)
{
	uint64_t v;
	int rc = take_number(r, d, l, d->what, &v);

	rc = rc ? rc : reader_check_mask(r, d->word, v, d->what);
	if (!rc)
		*((uint8_t *)r + d->offset) = v;
	r->build.caps.speed = topo_speeds(r->build.caps.speed);
	return rc;
}

static int take_u32(struct reader *r, const struct directive *d, struct lex *l)
{
	uint64_t v;
	int rc = take_number(r, d, l, UINT32_MAX, &v);

	if (!rc)
		*(uint32_t *)((char *)r + d->offset) = v;
	return rc;
}

static int take_system_guid(struct reader *r, const struct directive *d, struct lex *l)
{
	return take_number(r, d, l, UINT64_MAX, &r->build.system_guid);
}

static int take_debug(struct reader *r, const struct directive *d, struct lex *l)
{
	uint64_t v;

	return take_number(r, d, l, UINT32_MAX, &v);
}

static int take_module(struct reader *r, const struct directive *d, struct lex *l)
{
	struct slice s;

	lex_eat(l, '=');
	lex_blank(l);
	if (!lex_quoted(l, &s) || !slice_is_plain(s) || memchr(s.p, '#', s.len) ||
		memchr(s.p, '@', s.len))
		return reader_fail(r, "'%s' wants a quoted prefix without '#' and '@'", d->word);
	memcpy(r->module, s.p, s.len);
	r->module[s.len] = '\0';
	return 0;
}

static int take_include(struct reader *r, const struct directive *d, struct lex *l)
{
	struct slice s;

	lex_blank(l);
	if (!lex_quoted(l, &s) || !s.len)
		return reader_fail(r, "'%s' wants the name of a file in quotes", d->word);
	return reader_include(r, s);
}

static int take_command(struct reader *r, const struct directive *d, struct lex *l)
{
	if (!lex_blank(l))
		return reader_fail(r, "'%s' wants a command", d->word);
	return reader_keep(&r->commands, &r->n_commands, strndup(l->p, l->end - l->p));
}

#define OF(member) offsetof(struct reader, build.member)

static const struct directive directives[] = {
	{"Switch", take_node, TOPO_SWITCH, 0, 0},
	{"Hca", take_node, TOPO_CA, 0, 0},
	{"Ca", take_node, TOPO_CA, 0, 0},
	{"Rt", take_node, TOPO_ROUTER, 0, 0},
	{"switchguid", take_guids, TOPO_SWITCH, 0, 0},
	{"switchguids", take_guids, TOPO_SWITCH, 0, 0},
	{"caguid", take_guids, TOPO_CA, 0, 0},
	{"caguids", take_guids, TOPO_CA, 0, 0},
	{"hcaguid", take_guids, TOPO_CA, 0, 0},
	{"hcaguids", take_guids, TOPO_CA, 0, 0},
	{"rtguid", take_guids, TOPO_ROUTER, 0, 0},
	{"rtguids", take_guids, TOPO_ROUTER, 0, 0},
	{"vendid", take_u32, 0, 0, OF(vendor)},
	{"devid", take_u32, 0, 0, OF(device)},
	{"sysimgguid", take_system_guid, 0, 0, 0},
	{"width", take_mask, TOPO_WIDTHS, 1, OF(caps.width)},
	{"speed", take_mask, TOPO_SPEEDS, 1, OF(caps.speed)},
	{"extspeed", take_mask, TOPO_EXT_SPEEDS, 0, OF(caps.ext_speed)},
	{"module", take_module, 0, 0, 0},
	{"include", take_include, 0, 0, 0},
	{"do", take_command, 0, 0, 0},
	{"pdebug", take_debug, 0, 0, 0},
};

static int take_unknown(struct reader *r, struct slice word, struct lex *l)
{
	lex_blank(l);
	if (word.len && (lex_eat(l, '=') || lex_eat(l, '+')))
		return reader_fail(r, "unknown directive '%.*s'", slice_width(word), word.p);
	return 0;
}

/* "do" and "include" are words of English, too. */
static bool is_there(const struct directive *d, struct lex l)
{
	if (d->take == take_command)
		return l.p == l.end || *l.p == ' ' || *l.p == '\t';
	lex_blank(&l);
	return d->take != take_include || lex_eat(&l, '"');
}

int directive_line(struct reader *r, struct lex line)
{
	struct slice word = {0};

	if (!lex_blank(&line)) {
		r->record = TOPO_NONE;
		return 0;
	}
	if (*line.p == '#')
		return 0;
	if (*line.p == '[' || *line.p == '@')
		return record_port(r, &line);
	r->record = TOPO_NONE;
	lex_word(&line, &word);
	for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
		if (slice_is(word, directives[i].word) && is_there(&directives[i], line)) {
			lex_blank(&line);
			return directives[i].take(r, &directives[i], &line);
		}
	return take_unknown(r, word, &line);
}

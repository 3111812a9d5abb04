// SPDX-License-Identifier: BSD-3-Clause
#include "roce/fault/rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "wire/roce.h"

enum { DELAY_MAX_S = 60, BEHIND_MAX = 64 };

static const char *const deeds[] = {
	[FAULT_DROP] = "drop",
	[FAULT_DUPLICATE] = "duplicate",
	[FAULT_REORDER] = "reorder",
	[FAULT_DELAY] = "delay",
	[FAULT_CORRUPT] = "corrupt",
};

enum { DEEDS = sizeof deeds / sizeof deeds[0] };

static const struct unit {
	const char *name;
	uint64_t us;
} units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}};

enum { UNITS = sizeof units / sizeof units[0] };

/* A word of the text, and where it stands. */
struct word {
	size_t column;
	size_t len;            /* of the whole; the next has FAULT_WORD - 1 of it at most */
	char text[FAULT_WORD]; /* without what could not be part of any word */
};

struct parse {
	const char *text;
	size_t len, at;
	struct fault_rules *rules;
	struct fault_error *why;
	bool in_rule;
};

/* ---- words ---- */

static bool is_end(char c)
{
	return c == ';' || c == '\n';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == ',' || c == '\r';
}

/* The next word; false: the text, or the rule, ends here. */
static bool next_word(struct parse *p, struct word *w)
{
	size_t from;

	while (p->at < p->len && is_blank(p->text[p->at]))
		p->at++;
	from = p->at;
	while (p->at < p->len && !is_blank(p->text[p->at]) && !is_end(p->text[p->at]))
		p->at++;
	*w = (struct word){.column = from + 1, .len = p->at - from};
	memcpy(w->text, p->text + from, w->len < FAULT_WORD ? w->len : FAULT_WORD - 1);
	return w->len > 0;
}

static int wrong(struct parse *p, const struct word *w, const char *why)
{
	p->why->column = w->column;
	memcpy(p->why->word, w->text, sizeof p->why->word);
	p->why->why = why;
	return -EINVAL;
}

/* Is it "name=..."?  The rest, or NULL. */
static const char *value_of(const struct word *w, const char *name)
{
	size_t n = strlen(name);

	return !strncasecmp(w->text, name, n) && w->text[n] == '=' ? w->text + n + 1 : NULL;
}

/* A whole number of least to most, decimal or with 0x. */
static bool number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	return !errno && !*end && *out >= least && *out <= most;
}

/*
 * Digits, with up to as many behind a point as scale has zeros: the number times scale.  False:
 * it is none, or more than most.
 */
static bool decimal(const char **text, uint64_t scale, uint64_t most, uint64_t *out)
{
	const char *c = *text;
	uint64_t sum = 0;

	if (!isdigit((unsigned char)*c))
		return false;
	for (; isdigit((unsigned char)*c); c++) {
		sum += (*c - '0') * scale;
		if (sum > most)
			return false;
		if (isdigit((unsigned char)c[1]))
			sum *= 10;
	}
	if (*c == '.')
		for (c++; isdigit((unsigned char)*c) && scale > 1; c++)
			sum += (*c - '0') * (scale /= 10);
	*text = c;
	*out = sum;
	return sum <= most;
}

/* ---- which packets ---- */

/* Is the name of an opcode, or its beginning up to a '_', what was written? */
static bool is_named(const char *name, const char *text)
{
	for (; *text; name++, text++)
		if ((*name == ' ' ? '_' : tolower((unsigned char)*name)) != *text)
			return false;
	return !*name || *name == ' ' || *name == '_';
}

static int opcode(struct parse *p, const struct word *w, struct fault_rule *r, const char *value)
{
	uint64_t one;
	bool any = false;

	/* it is shorter than the word that it is part of */
	for (unsigned i = 0; !i || value[i - 1]; i++)
		r->opcode[i] = tolower((unsigned char)value[i]);
	memset(r->opcodes, 0, sizeof r->opcodes);
	if (number(value, 0, 255, &one)) {
		r->opcodes[one / 64] |= 1ull << one % 64;
		return 0;
	}
	for (unsigned code = 0; code < 256 && *value; code++)
		if (roce_op(code)->name && is_named(roce_op(code)->name, r->opcode)) {
			r->opcodes[code / 64] |= 1ull << code % 64;
			any = true;
		}
	return any ? 0 : wrong(p, w, "no opcode begins so; as rc_send_only, rc_read, ud or 0x11");
}

static int qpn(struct parse *p, const struct word *w, struct fault_rule *r, const char *value)
{
	uint64_t n;

	if (!number(value, 0, ROCE_QPN_MASK, &n))
		return wrong(p, w, "a queue pair number is at most 0xffffff");
	r->qpn = n;
	r->one_qpn = true;
	return 0;
}

static int number_word(
	struct parse *p, const struct word *w, uint32_t *field, const char *value, uint32_t most)
{
	uint64_t n;

	if (!number(value, 1, most, &n))
		return wrong(p, w,
			most == BEHIND_MAX ? "a number from 1 to 64 is needed"
					   : "a number from 1 on is needed");
	*field = n;
	return 0;
}

/* 0; 1: it is no such word; -EINVAL. */
static int filter(struct parse *p, const struct word *w, struct fault_rule *r)
{
	const char *value;

	if (!strcasecmp(w->text, "in") || !strcasecmp(w->text, "out")) {
		uint8_t way = (w->text[0] | 32) == 'i' ? FAULT_IN : FAULT_OUT;

		r->ways = r->ways == (FAULT_IN | FAULT_OUT) ? way : r->ways | way;
		return 0;
	}
	if ((value = value_of(w, "opcode")))
		return opcode(p, w, r, value);
	if ((value = value_of(w, "qpn")))
		return qpn(p, w, r, value);
	if ((value = value_of(w, "nth")))
		return number_word(p, w, &r->nth, value, UINT32_MAX);
	if ((value = value_of(w, "every")))
		return number_word(p, w, &r->every, value, UINT32_MAX);
	if ((value = value_of(w, "count")))
		return number_word(p, w, &r->count, value, UINT32_MAX);
	return 1;
}

static int odds(struct parse *p, const struct word *w, struct fault_rule *r)
{
	const char *text = w->text;
	uint64_t n;

	if (!decimal(&text, FAULT_ALWAYS / 100, FAULT_ALWAYS, &n) || strcmp(text, "%"))
		return wrong(p, w, "per cent are from 0% to 100%, as 0.5%");
	r->odds = n;
	return 0;
}

/* ---- what is done to them ---- */

static int delay(struct parse *p, const struct word *w, struct fault_rule *r)
{
	const char *text;
	uint64_t us;

	for (unsigned i = 0; i < UNITS; i++) {
		text = w->text;
		if (!decimal(&text, units[i].us, DELAY_MAX_S * 1000000ull, &us) ||
			strcasecmp(text, units[i].name))
			continue;
		if (r->deed != FAULT_DELAY)
			return wrong(p, w, "only 'delay' has a time");
		if (!us)
			break;
		r->delay_ns = us * 1000;
		return 0;
	}
	return wrong(p, w, "no such word, or time: 1us to 60s, as 250us or 5ms");
}

static int word_of_rule(struct parse *p, const struct word *w, struct fault_rule *r)
{
	const char *value;
	int rc;

	if (w->len >= FAULT_WORD)
		return wrong(p, w, "no such word");
	rc = filter(p, w, r);
	if (rc <= 0)
		return rc;
	if ((value = value_of(w, "behind"))) {
		if (r->deed != FAULT_REORDER)
			return wrong(p, w, "only 'reorder' has it");
		return number_word(p, w, &r->behind, value, BEHIND_MAX);
	}
	if (strchr(w->text, '%'))
		return odds(p, w, r);
	if (isdigit((unsigned char)w->text[0]))
		return delay(p, w, r);
	return wrong(p, w,
		"no such word; there are in, out, opcode=, qpn=, nth=, every=, count=, behind=, "
		"and per cent");
}

static int seed(struct parse *p, const struct word *w, const char *value)
{
	struct word more;

	if (!number(value, 0, UINT64_MAX, &p->rules->seed))
		return wrong(p, w, "a seed is a number");
	return next_word(p, &more) ? wrong(p, &more, "nothing follows a seed but ';'") : 0;
}

static int deed_of(const struct word *w)
{
	for (int i = 0; i < DEEDS; i++)
		if (!strcasecmp(w->text, deeds[i]))
			return i;
	return -1;
}

static int one_rule(struct parse *p, const struct word *first)
{
	struct fault_rule *r = &p->rules->rule[p->rules->n];
	const char *value = value_of(first, "seed");
	int deed = deed_of(first), rc;
	struct word w;

	if (value)
		return seed(p, first, value);
	if (deed < 0)
		return wrong(p, first,
			"a rule begins with drop, duplicate, reorder, delay, corrupt or seed=");
	if (p->rules->n == FAULT_RULES)
		return wrong(p, first, "these are more than 16 rules");
	*r = (struct fault_rule){
		.deed = deed, .ways = FAULT_IN | FAULT_OUT, .odds = FAULT_ALWAYS, .behind = 1};
	memset(r->opcodes, 0xff, sizeof r->opcodes);
	while (next_word(p, &w)) {
		rc = word_of_rule(p, &w, r);
		if (rc)
			return rc;
	}
	if (deed == FAULT_DELAY && !r->delay_ns)
		return wrong(p, first, "it needs a time, as 5ms");
	p->rules->n++;
	return 0;
}

int fault_parse(const char *text, size_t len, struct fault_rules *rules, struct fault_error *why)
{
	struct parse p = {.text = text, .len = len, .rules = rules, .why = why};
	struct word w = {.column = 1};
	int rc = 0;

	*rules = (struct fault_rules){.seed = 1};
	*why = (struct fault_error){0};
	if (memchr(text, 0, len))
		rc = wrong(&p, &w, "there is a NUL in the text");
	else if (len >= FAULT_TEXT)
		rc = wrong(&p, &w, "the text is longer than 479 bytes");
	for (; !rc && p.at < len; p.at++)
		if (next_word(&p, &w))
			rc = one_rule(&p, &w);
	if (rc)
		*rules = (struct fault_rules){0};
	return rc;
}

int fault_error_text(const struct fault_error *e, char *buf, size_t size)
{
	char word[4 * FAULT_WORD];

	text_escape(word, sizeof word, e->word, strlen(e->word));
	return snprintf(buf, size, "column %zu, '%s': %s", e->column, word, e->why);
}

/* ---- printing ---- */

struct print {
	char *buf;
	size_t len;
};

static void put(struct print *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct print *p, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(p->buf + p->len, FAULT_RULE_TEXT - p->len, format, args);
	va_end(args);
	/* rules have room by far: all their words are bounded */
	p->len += n < (int)(FAULT_RULE_TEXT - p->len) ? n : 0;
}

static void put_time(struct print *p, uint64_t ns)
{
	unsigned u = UNITS - 1;

	while (u && ns / 1000 % units[u].us)
		u--;
	put(p, " %llu%s", (unsigned long long)(ns / 1000 / units[u].us), units[u].name);
}

static void put_odds(struct print *p, uint32_t odds)
{
	uint32_t rest = odds % (FAULT_ALWAYS / 100), digits = 4;

	put(p, " %u", odds / (FAULT_ALWAYS / 100));
	while (rest && rest % 10 == 0) {
		rest /= 10;
		digits--;
	}
	if (rest)
		put(p, ".%0*u", (int)digits, rest);
	put(p, "%%");
}

static void put_number(struct print *p, const char *name, uint32_t value, uint32_t usual)
{
	if (value != usual)
		put(p, " %s=%u", name, value);
}

size_t fault_print(const struct fault_rule *r, char buf[FAULT_RULE_TEXT])
{
	struct print p = {.buf = buf};

	put(&p, "%s", deeds[r->deed % DEEDS]);
	if (r->delay_ns)
		put_time(&p, r->delay_ns);
	if (r->ways != (FAULT_IN | FAULT_OUT))
		put(&p, r->ways & FAULT_IN ? " in" : " out");
	if (*r->opcode)
		put(&p, " opcode=%s", r->opcode);
	if (r->one_qpn)
		put(&p, " qpn=0x%x", r->qpn);
	put_number(&p, "nth", r->nth, 0);
	put_number(&p, "every", r->every, 0);
	put_number(&p, "count", r->count, 0);
	put_number(&p, "behind", r->behind, 1);
	if (r->odds != FAULT_ALWAYS)
		put_odds(&p, r->odds);
	return p.len;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "topo/lex.h"

#include <string.h>

#include "base/text.h"
#include "topo/build.h"

bool lex_blank(struct lex *l)
{
	while (l->p < l->end && (*l->p == ' ' || *l->p == '\t'))
		l->p++;
	return l->p < l->end;
}

bool lex_eat(struct lex *l, char c)
{
	if (l->p == l->end || *l->p != c)
		return false;
	l->p++;
	return true;
}

bool lex_eat_text(struct lex *l, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(l->end - l->p) < len || memcmp(l->p, text, len) != 0)
		return false;
	l->p += len;
	return true;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool lex_word(struct lex *l, struct slice *out)
{
	const char *p = l->p;

	while (p < l->end && is_letter(*p))
		p++;
	*out = (struct slice){l->p, p - l->p};
	l->p = p;
	return out->len;
}

static int digit(char c, unsigned base)
{
	int v = c >= '0' && c <= '9'   ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;

	return v < (int)base ? v : -1;
}

static bool digits(struct lex *l, unsigned base, uint64_t max, uint64_t *out)
{
	const char *p = l->p;
	uint64_t v = 0;

	for (; p < l->end && digit(*p, base) >= 0; p++) {
		unsigned d = digit(*p, base);

		if (d > max || v > (max - d) / base)
			return false;
		v = v * base + d;
	}
	if (p == l->p)
		return false;
	l->p = p;
	*out = v;
	return true;
}

bool lex_number(struct lex *l, uint64_t max, uint64_t *out)
{
	struct lex hex = *l;

	if (!lex_eat_text(&hex, "0x"))
		return digits(l, 10, max, out);
	if (!digits(&hex, 16, max, out))
		return false;
	*l = hex;
	return true;
}

bool lex_hex(struct lex *l, uint64_t *out)
{
	return digits(l, 16, UINT64_MAX, out);
}

bool lex_quoted(struct lex *l, struct slice *out)
{
	const char *from = l->p + 1, *to;

	if (l->p == l->end || *l->p != '"')
		return false;
	to = memchr(from, '"', l->end - from);
	if (!to)
		return false;
	*out = (struct slice){from, to - from};
	l->p = to + 1;
	return true;
}

bool slice_is(struct slice s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.p, text, s.len);
}

int slice_width(struct slice s)
{
	return s.len < TOPO_TEXT_MAX ? s.len : TOPO_TEXT_MAX;
}

bool slice_is_plain(struct slice s)
{
	char shown[4 * TOPO_TEXT_MAX + 1];

	return s.len <= TOPO_TEXT_MAX && text_escape(shown, sizeof shown, s.p, s.len) == s.len;
}

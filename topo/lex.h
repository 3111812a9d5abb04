/* SPDX-License-Identifier: BSD-3-Clause */
/* What lines of a netlist consist of.  A failed call leaves the place as it was. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in a line. */
struct lex {
	const char *p, *end;
};

/* Bytes of the line, not ended by a NUL. */
struct slice {
	const char *p;
	size_t len;
};

/* Skips blanks; whether something is left. */
bool lex_blank(struct lex *l);

/* Skips c. */
bool lex_eat(struct lex *l, char c);

/* Skips the text. */
bool lex_eat_text(struct lex *l, const char *text);

/* Letters, at least one. */
bool lex_word(struct lex *l, struct slice *out);

/* A number, decimal or 0x and hexadecimal, at most max. */
bool lex_number(struct lex *l, uint64_t max, uint64_t *out);

/* Hexadecimal digits. */
bool lex_hex(struct lex *l, uint64_t *out);

/* What stands in double quotes. */
bool lex_quoted(struct lex *l, struct slice *out);

/* Whether it is that text. */
bool slice_is(struct slice s, const char *text);

/* How much of it belongs into a message, for "%.*s". */
int slice_width(struct slice s);

/* Whether a terminal shows it as it is, and it is UTF-8; at most TOPO_TEXT_MAX bytes. */
bool slice_is_plain(struct slice s);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules of faults to inject into RoCE packets, as text (weft-fault(1)) and as what it means:
 *
 *   seed=7; drop in opcode=rc_acknowledge 1%; delay 5ms out qpn=0x12 nth=3
 *
 * Rules are divided by ';' or a line's end, words by blanks or ','.  The first word of a rule is
 * what it does; the others narrow down to which packets, in any order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FAULT_RULES = 16,      /* of one text */
	FAULT_TEXT = 480,      /* bytes of one text, its NUL included */
	FAULT_RULE_TEXT = 200, /* of one rule printed */
	FAULT_WORD = 32,
	FAULT_ALWAYS = 1000000, /* of a million */
};

/* What a rule does to a packet. */
enum fault_deed { FAULT_DROP, FAULT_DUPLICATE, FAULT_REORDER, FAULT_DELAY, FAULT_CORRUPT };

/* Which way it goes; bits. */
enum fault_way { FAULT_IN = 1, FAULT_OUT = 2 };

struct fault_rule {
	uint8_t deed;            /* enum fault_deed */
	uint8_t ways;            /* enum fault_way */
	bool one_qpn;            /* qpn counts */
	char opcode[FAULT_WORD]; /* as it was written, lower case; "": any */
	uint64_t opcodes[4];     /* a bit for each opcode that it is for */
	uint32_t qpn;            /* the destination's */
	uint32_t nth;            /* only the n-th that fits; 0: all */
	uint32_t every;          /* only each n-th; 0: all */
	uint32_t count;          /* so often at most; 0: always */
	uint32_t odds;           /* of a million */
	uint32_t behind;         /* reorder: packets that overtake it */
	uint64_t delay_ns;
};

struct fault_rules {
	uint32_t n;
	uint64_t seed;
	struct fault_rule rule[FAULT_RULES];
};

/* What is wrong with a text. */
struct fault_error {
	size_t column;         /* of the word, from 1; lines count as one */
	char word[FAULT_WORD]; /* as much of it as there is room for: others' bytes */
	const char *why;
};

/* Reads a text of len bytes.  0; -EINVAL: *why says what is wrong, and *rules has none. */
int fault_parse(const char *text, size_t len, struct fault_rules *rules, struct fault_error *why);

/* One line: "column 6, 'often': no such word ..."; control characters escaped.  As snprintf. */
int fault_error_text(const struct fault_error *, char *buf, size_t size);

/* The rule as text that reads back as the same rule.  Returns its length. */
size_t fault_print(const struct fault_rule *, char buf[FAULT_RULE_TEXT]);

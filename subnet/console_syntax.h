/* SPDX-License-Identifier: BSD-3-Clause */
/* What a line of a console says, and what it would have to say. */
#pragma once

#include "subnet/console.h"
#include "topo/lex.h"

/* Commands besides those of enum console_own. */
enum console_what {
	CONSOLE_DUMP = CONSOLE_OWN,
	CONSOLE_ROUTE,
	CONSOLE_LINK,
	CONSOLE_UNLINK,
	CONSOLE_CLEAR,
	CONSOLE_GUID,
	CONSOLE_LOSSES,
	CONSOLE_BASELID,
	CONSOLE_START,
	CONSOLE_HELP,
	CONSOLE_RELINK,
	CONSOLE_COUNTER,
	CONSOLE_NOTHING, /* a comment, or an empty line */
};

enum { CONSOLE_NUMBERS = 4 };

/* "id", or "id"[port] */
struct console_place {
	uint32_t node;
	uint8_t port;
	bool one;   /* a port was named */
	bool there; /* a node was */
};

struct console_command {
	unsigned what; /* enum console_what, or console_own */
	struct console_place at, peer;
	uint64_t number[CONSOLE_NUMBERS];
	unsigned n_numbers;   /* that were there */
	struct slice counter; /* Attr.Field=value: all of it */
};

/* Reads one line.  0, or -errno as console_line(). */
int console_parse(struct console *c, const char *line, size_t len, struct console_command *out);

/* The command as text, nodes by their ids; as console_normalise(). */
int console_write(
	const struct console *c, const struct console_command *cmd, char out[CONSOLE_LINE]);

/* Fails because the line is not what its command wants. */
int console_misused(struct console *c, unsigned what);

/* Prints what there is to say. */
void console_help(struct console *c);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The console of a subnet: commands as ibsim's console has them, one a line, carried out while the
 * subnet lives.  weft-topo(1) lists them.  No I/O: text goes to the owner, and what is the owner's
 * business (waiting, its clients, its end) it is asked to do.
 */
#pragma once

#include "subnet/subnet.h"

enum {
	CONSOLE_ERROR = 256, /* room for a message, one line without its end */
	CONSOLE_LINE = 256,  /* room for a command as console_normalise() writes it */
};

/* What the owner does, and the number that goes with it. */
enum console_own {
	CONSOLE_VERBOSE,  /* the new level; UINT64_MAX: tell the present one */
	CONSOLE_WAIT,     /* seconds before the next line */
	CONSOLE_ATTACHED, /* list the clients */
	CONSOLE_X,        /* that client is to be cut off */
	CONSOLE_QUIT,
	CONSOLE_OWN
};

/* What a console needs of its owner. */
struct console_hooks {
	/* Some more of a command's output, which may end within a line.  No NUL ends it. */
	void (*print)(void *arg, const char *text, size_t len);
	/*
	 * 0, or -errno, which becomes the command's error unless the hook noted one.  NULL: there
	 * is no such command here.
	 */
	int (*own[CONSOLE_OWN])(void *arg, uint64_t n);
	void *arg;
};

struct console {
	struct subnet *subnet;
	const struct topo *topo; /* that it was made of: the names of its nodes */
	struct console_hooks hooks;
	char error[CONSOLE_ERROR]; /* of the last line that failed */
};

/*
 * Carries out one line, with or without its end.  0; else error says why, and nothing has changed:
 * -EINVAL (not a command, or not as it wants to be), -ENOENT (no such node, port, LID or counter),
 * -EBUSY (wired already), -ENOTCONN (nothing is plugged there; no route), -EOPNOTSUPP, or what a
 * hook said.
 */
int console_line(struct console *c, const char *line, size_t len);

/*
 * The same line as a netlist's `do` keeps it: the whole word, nodes by their ids.  Returns its
 * length; 0: it changes nothing that outlasts the subnet.  Else as console_line() for a line that
 * it would not begin with; whether the subnet takes it is not asked.
 */
int console_normalise(struct console *c, const char *line, size_t len, char out[CONSOLE_LINE]);

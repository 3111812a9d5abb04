/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that start another program, and what they leave of its environment. */
#pragma once

#include <stdbool.h>

enum { WRAPPER_WORDS = 32, WRAPPER_TEXT = 256 };

struct wrapper {
	/* Of what keeps from the program what leads it to Weft; NULL: nothing does. */
	const char *name;
	/* The command that it starts, as it is; NULL: none that we know of. */
	char **inner;
	/* Room for inner. */
	char *words[WRAPPER_WORDS];
	char text[WRAPPER_TEXT];
};

/*
 * Fills *w in for a command, up to NULL: it knows env(1), sudo(8) and their like by name.  w->inner
 * points into cmd, or into *w.
 */
void wrapper_look(char **cmd, struct wrapper *w);

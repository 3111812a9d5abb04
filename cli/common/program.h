/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a program can be served by Weft's libraries, by what its file says. */
#pragma once

#include <limits.h>
#include <stdbool.h>

enum { PROGRAM_WHY = 1024, PROGRAM_REMEDY = 256 };

struct program_verdict {
	char path[PATH_MAX];         /* what cmd[0] is found as; "": PATH leads to no program */
	char why[PROGRAM_WHY];       /* what keeps it from Weft; "": nothing that is known */
	char remedy[PROGRAM_REMEDY]; /* what to do about it */
	bool lost;                   /* it cannot be run at all */
	char runtime[PATH_MAX];      /* its sanitizer's, to be preloaded first; "": none */
};

/*
 * Looks at the program that a command, up to NULL, starts: cmd[0] is found by PATH, and behind
 * scripts and env(1) what these start.  lib: where Weft's libraries lie.  What cannot be looked at
 * has nothing wrong with it.  Runs nothing.
 */
void program_look(char **cmd, const char *lib, struct program_verdict *v);

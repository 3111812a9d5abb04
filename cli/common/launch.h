/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <argp.h>
#include <stdbool.h>

/* Options that say how a program is to be started on Weft (run, env). */
struct launch {
	const char *fabric, *node;
	bool sdp, no_paths;
	bool crash;          /* preload what the power-failure simulator needs */
	const char *runtime; /* of the program's sanitizer: preload it first; NULL or "": none */
};

/* Parser of these options; its input is a struct launch. */
extern const struct argp launch_argp;

/* The program to be started, behind such options. */
struct program {
	struct launch launch;
	char **cmd; /* its arguments, until NULL */
};

/* Parser of both; its input is a struct program.  No program is wrong usage. */
extern const struct argp program_argp;

struct launch_var {
	const char *name;
	char *value; /* NULL: leave the variable alone; else the owner frees it */
};

enum { LAUNCH_VARS = 4 };

/*
 * Computes what the environment of the program must hold, from the options and from the present
 * environment.  Returns 0, or an exit code after printing why.  Free with launch_free().
 */
int launch_vars(const struct launch *launch, struct launch_var vars[LAUNCH_VARS]);
void launch_free(struct launch_var vars[LAUNCH_VARS]);

/*
 * Becomes the program cmd[0], found by PATH, on Weft.  Where its file says that it will not load
 * Weft's libraries, prints that first (cli/common/program.h).  Returns only if it fails: the exit
 * code, after printing why.
 */
int launch_exec(const struct launch *launch, char **cmd);

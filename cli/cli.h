/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the weft command share.  Each command is one function in its own file. */
#pragma once

#include <argp.h>
#include <limits.h>
#include <stdbool.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_RUNNABLE = 126, EXIT_NO_CMD = 127 };

/* The commands.  argv[0] is "weft NAME", for messages; the result is the exit code. */
int cmd_run(int argc, char **argv);
int cmd_env(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_down(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_crash(int argc, char **argv);

/*
 * Prints "weft: text" as one line to stderr, control characters escaped (base/text.h), and returns
 * EXIT_FAILED.
 */
int cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* argp_error(3) with control characters escaped. */
void cli_usage(struct argp_state *state, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Flushes stdout: EXIT_OK; if anything could not be written, says so and returns EXIT_FAILED. */
int cli_written(void);

/*
 * What weft lies beside: in a build tree build/weft has build/lib and build/weftd, else they are
 * where Weft was installed.
 */
struct cli_dirs {
	char lib[PATH_MAX];   /* directory of the shared libraries */
	char weftd[PATH_MAX]; /* the daemon's executable, which may be missing */
	char self[PATH_MAX];  /* this program */
};

/* Fills *dirs; sets WEFT_DAEMON for this process unless the user did.  0 or -errno. */
int cli_find_dirs(struct cli_dirs *dirs);

/* Option --fabric NAME alone, for commands that ask weftd; *input: const char * of the name. */
extern const struct argp cli_fabric_argp;

/* The fabric's name for messages: the given one, $WEFT_FABRIC, or "default". */
const char *cli_fabric_name(const char *given);

/* Options that say how a program is to be started on Weft (run, env). */
struct launch {
	const char *fabric, *node;
	bool sdp, no_paths;
	bool crash; /* preload what the power-failure simulator needs */
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
 * Becomes the program cmd[0], found by PATH, on Weft.  Returns only if that fails: the exit code,
 * after printing why.
 */
int launch_exec(const struct launch *launch, char **cmd);

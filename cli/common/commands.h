/* SPDX-License-Identifier: BSD-3-Clause */
/* A command that has commands under it, each with options of its own: weft, weft crash. */
#pragma once

struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv); /* argv[0] is "weft ... NAME"; the exit code */
};

struct commands {
	const char *name;           /* "weft", "weft crash" */
	const char *doc, *see;      /* for --help: what it is for, and where more is said */
	const struct command *list; /* until one without a name */
	const char *const *not_yet; /* names that will come, until NULL; or NULL */
};

/*
 * Runs the command that argv[1], or the first argument behind options, names: the exit code.
 * "help" stands for --help, and "help NAME" for "NAME --help".
 */
int commands_run(const struct commands *c, int argc, char **argv);

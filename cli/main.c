// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Takes the place of libc's, so it must be visible to it. */
__attribute__((visibility("default"))) const char *argp_program_version = "weft " WEFT_VERSION;

struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
	{"run", "run a program on Weft", cmd_run},
	{"env", "print what a shell needs to run programs on Weft", cmd_env},
	{"up", "start weftd, to stay", cmd_up},
	{"down", "stop weftd", cmd_down},
	{"status", "show what weftd serves", cmd_status},
	{"crash", "find out what a power failure would leave of persistent memory", cmd_crash},
	{"doctor", "check this machine and this installation", cmd_doctor},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const char *const not_yet[] = {"topo", "top", "capture", "fault", "peercheck", "bench"};

int cli_fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	fputs("weft: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	return EXIT_FAILED;
}

int cli_written(void)
{
	int failed = fflush(stdout) ? errno : ferror(stdout) ? EIO : 0;

	clearerr(stdout);
	return failed ? cli_fail("cannot write to standard output: %s; make room, or write "
				 "elsewhere",
				strerror(failed))
		      : EXIT_OK;
}

/* Options in front of the command's name; the rest is the command's. */
static error_t parse(int key, char *arg, struct argp_state *state)
{
	int *first = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_ARG:
		*first = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Adds the list of commands to the help. */
static char *with_commands(int key, const char *text, void *input)
{
	char *list = NULL;
	size_t size;
	FILE *out;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC || !(out = open_memstream(&list, &size)))
		return (char *)text;
	fputs("Commands:\n", out);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\nEach has --help.  See weft(1) and weft(7).\n", out);
	fclose(out);
	return list;
}

static int dispatch(const char *name, int argc, char **argv)
{
	char title[64];

	snprintf(title, sizeof title, "weft %s", name);
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (!strcmp(name, commands[i].name)) {
			argv[0] = title;
			return commands[i].run(argc, argv);
		}
	}
	for (size_t i = 0; i < sizeof not_yet / sizeof *not_yet; i++)
		if (!strcmp(name, not_yet[i]))
			return cli_fail("'%s' is not supported yet; see docs/status.md", name);
	cli_fail("unknown command '%s'; try 'weft --help'", name);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {.parser = parse,
		.args_doc = "COMMAND [ARGUMENT...]",
		.doc = "Soft RDMA in user space: runs unmodified RDMA programs on any machine.\v",
		.help_filter = with_commands};
	int first = 0;

	argp_err_exit_status = EXIT_USAGE;
	argv[0] = "weft";
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &first);
	return dispatch(argv[first], argc - first, argv + first);
}

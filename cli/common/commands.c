// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/commands.h"

#include <stdio.h>
#include <string.h>

#include "cli/common/say.h"

struct parsed {
	const struct commands *c;
	int first; /* the name's place in argv */
};

/* Options in front of the command's name; the rest is the command's. */
static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct parsed *p = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_ARG:
		p->first = state->next - 1;
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
	const struct parsed *p = input;
	int width = 0, len;
	char *list = NULL;
	size_t size;
	FILE *out;

	if (key != ARGP_KEY_HELP_POST_DOC || !p || !(out = open_memstream(&list, &size)))
		return (char *)text;
	for (const struct command *c = p->c->list; c->name; c++)
		width = (len = (int)strlen(c->name)) > width ? len : width;
	fputs("Commands:\n", out);
	for (const struct command *c = p->c->list; c->name; c++)
		fprintf(out, "  %-*s  %s\n", width, c->name, c->summary);
	fprintf(out, "\nEach has --help.  See %s.\n", p->c->see);
	fclose(out);
	return list;
}

static int unknown(const struct commands *c, const char *name)
{
	for (const char *const *n = c->not_yet; n && *n; n++)
		if (!strcmp(name, *n))
			return cli_fail("'%s' is not supported yet; see docs/status.md", name);
	cli_fail("unknown command '%s'; try '%s --help'", name, c->name);
	return EXIT_USAGE;
}

/* "help" is --help, and "help NAME" is "NAME --help". */
static void take_help(const struct argp *argp, struct parsed *p, int argc, char **argv)
{
	if (p->first + 1 < argc) {
		argv[p->first] = argv[p->first + 1];
		argv[p->first + 1] = "--help";
	} else {
		argv[p->first] = "--help";
		argp_parse(argp, argc, argv, ARGP_IN_ORDER, NULL, p); /* does not return */
	}
}

int commands_run(const struct commands *c, int argc, char **argv)
{
	const struct argp argp = {.parser = parse,
		.args_doc = "COMMAND [ARGUMENT...]",
		.doc = c->doc,
		.help_filter = with_commands};
	struct parsed p = {.c = c};
	char title[64];

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &p);
	if (!strcmp(argv[p.first], "help"))
		take_help(&argp, &p, argc, argv);
	for (const struct command *k = c->list; k->name; k++) {
		if (strcmp(argv[p.first], k->name))
			continue;
		snprintf(title, sizeof title, "%s %s", c->name, k->name);
		argv[p.first] = title;
		return k->run(argc - p.first, argv + p.first);
	}
	return unknown(c, argv[p.first]);
}

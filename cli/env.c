// SPDX-License-Identifier: BSD-3-Clause
#include "cli/env.h"

#include <stdio.h>

#include "cli/common/launch.h"
#include "cli/common/say.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->input;
		return 0;
	case ARGP_KEY_ARG:
		cli_usage(state, "takes no arguments; to run a program, use 'weft run'");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* In single quotes nothing is special to a shell but their end. */
static void print_quoted(const char *s)
{
	putchar('\'');
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*s);
	}
	putchar('\'');
}

int cmd_env(int argc, char **argv)
{
	static const struct argp_child children[] = {{&launch_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {.parser = parse,
		.doc = "Prints the commands by which a shell runs all its programs on Weft: "
		       "eval \"$(weft env)\"",
		.children = children};
	struct launch_var vars[LAUNCH_VARS];
	struct launch launch = {0};
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &launch);
	rc = launch_vars(&launch, vars);
	if (rc)
		return rc;
	for (int i = 0; i < LAUNCH_VARS; i++) {
		if (!vars[i].value)
			continue;
		printf("export %s=", vars[i].name);
		print_quoted(vars[i].value);
		putchar('\n');
	}
	launch_free(vars);
	return cli_written();
}

// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

struct run {
	struct launch launch;
	char **cmd;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run *run = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &run->launch;
		return 0;
	case ARGP_KEY_ARG:
		run->cmd = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which program?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&launch_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {.parser = parse,
		.args_doc = "[--] PROGRAM [ARGUMENT...]",
		.doc = "Runs an unmodified RDMA program on Weft.\vThe exit code is the program's; "
		       "127: "
		       "there is no such program, 126: it cannot be run.",
		.children = children};
	struct launch_var vars[LAUNCH_VARS];
	struct run run = {0};
	int rc;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);
	rc = launch_vars(&run.launch, vars);
	if (rc)
		return rc;
	for (int i = 0; i < LAUNCH_VARS; i++)
		if (vars[i].value && setenv(vars[i].name, vars[i].value, 1))
			return cli_fail("out of memory");
	launch_free(vars);
	execvp(run.cmd[0], run.cmd);
	rc = errno == ENOENT ? EXIT_NO_CMD : EXIT_NOT_RUNNABLE;
	cli_fail("cannot run '%s': %s; check its name%s", run.cmd[0], strerror(errno),
		rc == EXIT_NO_CMD ? " and PATH" : " and mode");
	return rc;
}

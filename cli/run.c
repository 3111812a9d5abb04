// SPDX-License-Identifier: BSD-3-Clause
#include <stddef.h>

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
	struct run run = {0};

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);
	return launch_exec(&run.launch, run.cmd);
}

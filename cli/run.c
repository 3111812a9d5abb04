// SPDX-License-Identifier: BSD-3-Clause
#include "cli/run.h"

#include <stddef.h>

#include "cli/common/launch.h"
#include "cli/common/say.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct program *program = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &program->launch;
		return 0;
	case ARGP_KEY_ARG:
		program->cmd = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		cli_usage(state, "which program?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child launch_child[] = {{&launch_argp, 0, NULL, 0}, {0}};

const struct argp program_argp = {.parser = parse, .children = launch_child};

int cmd_run(int argc, char **argv)
{
	struct argp argp = program_argp;
	struct program program = {0};

	argp.args_doc = "[--] PROGRAM [ARGUMENT...]";
	argp.doc = "Runs an unmodified RDMA program on Weft.\vThe exit code is the program's; "
		   "127: there is no such program, 126: it cannot be run.";
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &program);
	return launch_exec(&program.launch, program.cmd);
}

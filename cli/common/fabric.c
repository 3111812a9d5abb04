// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/fabric.h"

#include "cli/common/say.h"
#include "rdv/paths.h"

static const struct argp_option options[] = {
	{"fabric", 'F', "NAME", 0, "the fabric (default: $WEFT_FABRIC, else 'default')", 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **fabric = state->input;

	switch (key) {
	case 'F':
		if (!rdv_fabric_name_ok(arg))
			cli_usage(state, "bad fabric name '%s'; use letters, digits, '_', '.', '-'",
				arg);
		*fabric = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_alone(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		cli_usage(state, "takes no arguments");
	return parse(key, arg, state);
}

const struct argp cli_fabric_argp = {.options = options, .parser = parse_alone};
const struct argp cli_fabric_option_argp = {.options = options, .parser = parse};

const char *cli_fabric_name(const char *given)
{
	return given ? given : rdv_fabric_name();
}

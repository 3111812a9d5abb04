// SPDX-License-Identifier: BSD-3-Clause
/* weft up and weft down. */
#include "cli/up.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/dirs.h"
#include "cli/common/fabric.h"
#include "cli/common/say.h"
#include "rdv/admin.h"

static error_t pass_on(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key == ARGP_KEY_INIT)
		state->child_inputs[0] = state->input;
	return key == ARGP_KEY_INIT ? 0 : ARGP_ERR_UNKNOWN;
}

static const struct argp_child fabric_child[] = {{&cli_fabric_argp, 0, NULL, 0}, {0}};

static void say(const char *what, const char *fabric, int32_t pid)
{
	if (pid)
		printf("%s fabric '%s' (pid %d)\n", what, cli_fabric_name(fabric), pid);
	else
		printf("%s fabric '%s'\n", what, cli_fabric_name(fabric));
}

int cmd_up(int argc, char **argv)
{
	static const struct argp argp = {.parser = pass_on,
		.doc = "Starts weftd for a fabric, to stay until 'weft down', and waits until it "
		       "answers.\vIf it runs already, it stays from now on.",
		.children = fabric_child};
	const char *fabric = NULL;
	struct cli_dirs dirs;
	int32_t pid;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &fabric);
	cli_find_dirs(&dirs);
	rc = rdv_ping(fabric, &pid);
	if ((rc && rc != -ENOTCONN) || rdv_start(fabric, true, &pid))
		return EXIT_FAILED;
	say(rc ? "weftd serves" : "weftd already serves", fabric, pid);
	return cli_written();
}

int cmd_down(int argc, char **argv)
{
	static const struct argp argp = {.parser = pass_on,
		.doc = "Stops weftd of a fabric.\vThat none runs is no error.",
		.children = fabric_child};
	const char *fabric = NULL;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &fabric);
	rc = rdv_shutdown(fabric);
	if (rc == -ENOTCONN)
		printf("no weftd serves fabric '%s'\n", cli_fabric_name(fabric));
	else if (rc)
		return EXIT_FAILED;
	else
		printf("weftd of fabric '%s' has stopped\n", cli_fabric_name(fabric));
	return cli_written();
}

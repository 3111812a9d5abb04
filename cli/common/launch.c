// SPDX-License-Identifier: BSD-3-Clause
/* How the environment of a program on Weft looks: for run and env. */
#include "cli/common/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/dirs.h"
#include "cli/common/node.h"
#include "cli/common/program.h"
#include "cli/common/say.h"
#include "rdv/paths.h"

enum { KEY_SDP = 256, KEY_PATHS, KEY_NO_PATHS };

static const char shim[] = "libweftpaths.so", crash_shim[] = "libweftcrash.so";

static const struct argp_option options[] = {
	{"fabric", 'F', "NAME", 0, "the fabric to work on (sets WEFT_FABRIC)", 0},
	{"node", 'N', "NODE", 0,
		"the node of the topology to be: id, description, GUID or number; without a "
		"topology that of SCIF, 0 to 65535 (sets WEFT_NODE)",
		0},
	{"sdp", KEY_SDP, NULL, 0, "carry TCP sockets by SDP (not supported yet)", 0},
	{"paths", KEY_PATHS, NULL, 0,
		"show /dev/infiniband, /sys/class/infiniband and /dev/scif to the program (the "
		"default)",
		0},
	{"no-paths", KEY_NO_PATHS, NULL, 0,
		"leave /dev/infiniband, /sys/class/infiniband and /dev/scif as they are on this "
		"machine",
		0},
	{0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct launch *launch = state->input;

	switch (key) {
	case 'F':
		if (!rdv_fabric_name_ok(arg))
			cli_usage(state, "bad fabric name '%s'; use letters, digits, '_', '.', '-'",
				arg);
		launch->fabric = arg;
		return 0;
	case 'N':
		if (!*arg)
			cli_usage(state, "bad node ''; use a number from 0 to 65535, or a name");
		launch->node = arg;
		return 0;
	case KEY_SDP:
		launch->sdp = true;
		return 0;
	case KEY_PATHS:
	case KEY_NO_PATHS:
		launch->no_paths = key == KEY_NO_PATHS;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp launch_argp = {.options = options, .parser = parse};

/* Whether list, cut at any of separators, holds item. */
static bool holds(const char *list, const char *separators, const char *item)
{
	size_t n = strlen(item);

	while (*list) {
		size_t len = strcspn(list, separators);

		if (len == n && !memcmp(list, item, n))
			return true;
		list += len;
		list += *list != '\0';
	}
	return false;
}

/* Our directory in front of an existing LD_LIBRARY_PATH, unless it is there already. */
static char *library_path(const char *lib)
{
	const char *old = secure_getenv("LD_LIBRARY_PATH");
	size_t n = strlen(lib);
	char *value;

	if (!old || !*old)
		return strdup(lib);
	if (!strncmp(old, lib, n) && strchr(":;", old[n]))
		return strdup(old);
	return asprintf(&value, "%s:%s", lib, old) < 0 ? NULL : value;
}

/*
 * One of our libraries behind those in list.  An existing LD_PRELOAD stays in front: a sanitizer's
 * runtime insists on being first.  A directory with a blank cannot be named in LD_PRELOAD; there
 * LD_LIBRARY_PATH finds the library.
 */
static char *with_preload(char *list, const char *lib, const char *name)
{
	char ours[PATH_MAX + 32], *value;

	if (strpbrk(lib, " \t\n"))
		snprintf(ours, sizeof ours, "%s", name);
	else
		snprintf(ours, sizeof ours, "%s/%s", lib, name);
	if (list && holds(list, ": ", ours))
		return list;
	if (asprintf(&value, "%s%s%s", list ? list : "", list ? ":" : "", ours) < 0)
		value = NULL;
	free(list);
	return value;
}

/* The runtime of a sanitizer in front, unless list has it, by whatever path. */
static char *with_runtime(char *list, const char *runtime)
{
	char *value;

	if (!list)
		return strdup(runtime);
	if (strstr(list, basename(runtime)))
		return list;
	if (asprintf(&value, "%s:%s", runtime, list) < 0)
		value = NULL;
	free(list);
	return value;
}

/* NULL: as it is, or out of memory. */
static char *preload(const struct launch *launch, const char *lib)
{
	const char *old = secure_getenv("LD_PRELOAD");
	char *list = old && *old ? strdup(old) : NULL;

	if (launch->runtime && *launch->runtime)
		list = with_runtime(list, launch->runtime);
	if (!launch->no_paths)
		list = with_preload(list, lib, shim);
	if (launch->crash)
		list = with_preload(list, lib, crash_shim);
	return list;
}

static char *copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

/* WEFT_NODE: 0, or an exit code after printing why. */
static int node_value(const struct launch *launch, struct launch_var *var)
{
	uint32_t number;
	int rc;

	*var = (struct launch_var){"WEFT_NODE", NULL};
	if (!launch->node)
		return 0;
	rc = cli_find_node(launch->fabric, launch->node, &number);
	if (!rc && asprintf(&var->value, "%u", number) < 0)
		return cli_fail("out of memory");
	return rc;
}

/* Without the file a program would silently work on the system's library: 0 or EXIT_FAILED. */
static int need_file(const char *lib, const char *name)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof path, "%s/%s", lib, name);
	if (!access(path, R_OK))
		return 0;
	return cli_fail("%s: %s; run weft from its build directory, or install it to where it was "
			"configured to lie (make install, without DESTDIR)",
		path, strerror(errno));
}

int launch_vars(const struct launch *launch, struct launch_var vars[LAUNCH_VARS])
{
	struct cli_dirs dirs;
	int rc;

	if (launch->sdp)
		return cli_fail("--sdp is not supported yet; see docs/status.md");
	rc = cli_find_dirs(&dirs);
	if (rc)
		return cli_fail("cannot find out where I am: %s; is /proc mounted?", strerror(-rc));
	if (strpbrk(dirs.lib, ":;$"))
		return cli_fail("the dynamic linker cannot use the directory '%s'; move it to a "
				"path without ':', ';' and '$'",
			dirs.lib);
	if (need_file(dirs.lib, "libibverbs.so.1") || need_file(dirs.lib, "librdmacm.so.1") ||
		(!launch->no_paths && need_file(dirs.lib, shim)) ||
		(launch->crash && need_file(dirs.lib, crash_shim)))
		return EXIT_FAILED;
	vars[0] = (struct launch_var){"LD_LIBRARY_PATH", library_path(dirs.lib)};
	vars[1] = (struct launch_var){"LD_PRELOAD", preload(launch, dirs.lib)};
	vars[2] = (struct launch_var){"WEFT_FABRIC", copy(launch->fabric)};
	rc = node_value(launch, &vars[3]);
	if (rc)
		return rc;
	if (!vars[0].value || (!vars[1].value && (!launch->no_paths || launch->crash)) ||
		(!vars[2].value && launch->fabric) || (!vars[3].value && launch->node))
		return cli_fail("out of memory");
	return 0;
}

void launch_free(struct launch_var vars[LAUNCH_VARS])
{
	for (int i = 0; i < LAUNCH_VARS; i++)
		free(vars[i].value);
}

static void look_at(char **cmd, struct program_verdict *v)
{
	struct cli_dirs dirs;

	*v = (struct program_verdict){0};
	if (!cli_find_dirs(&dirs))
		program_look(cmd, dirs.lib, v);
}

int launch_exec(const struct launch *launch, char **cmd)
{
	struct launch with_runtime = *launch;
	struct launch_var vars[LAUNCH_VARS];
	struct program_verdict verdict;
	int rc;

	look_at(cmd, &verdict);
	with_runtime.runtime = verdict.runtime;
	rc = launch_vars(&with_runtime, vars);
	if (rc)
		return rc;
	if (*verdict.why)
		cli_fail("%s; %s", verdict.why, verdict.remedy);
	for (int i = 0; i < LAUNCH_VARS; i++)
		if (vars[i].value && setenv(vars[i].name, vars[i].value, 1))
			return cli_fail("out of memory");
	launch_free(vars);
	execvp(cmd[0], cmd);
	rc = errno == ENOENT ? EXIT_NO_CMD : EXIT_NOT_RUNNABLE;
	if (verdict.lost) /* that was said */
		return rc;
	cli_fail("cannot run '%s': %s; check its name%s", cmd[0], strerror(errno),
		rc == EXIT_NO_CMD ? " and PATH" : " and mode");
	return rc;
}

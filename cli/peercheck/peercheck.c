// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/peercheck.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/dirs.h"
#include "cli/common/say.h"
#include "cli/peercheck/device.h"
#include "cli/peercheck/keeper.h"
#include "cli/peercheck/loads.h"
#include "cli/peercheck/report.h"
#include "cli/peercheck/sanitizer.h"

enum { KEY_JSON = 256, KEY_ONLY, KEY_LIST, KEY_JOBS, KEY_CFLAGS, KEY_QUICK, KEY_KEEP_GOING };

struct options {
	const char *client, *device, *only;
	char generation, cflags; /* letters; 0: not given */
	bool quick, list, json, keep_going;
	unsigned jobs;
};

static const struct argp_option argp_options[] = {
	{"device", 'd', "DEVICE", 0,
		"nvidia, kfd, vma, or a library with a weft_peer_device (default: by what the "
		"client "
		"calls)",
		0},
	{"generation", 'g', "A..E", 0, "check it as for that generation of the API", 0},
	{"keep-going", KEY_KEEP_GOING, NULL, 0, "run all scenarios, whatever rule is broken", 0},
	{"quick", KEY_QUICK, NULL, 0, "some of the points alone: 5 s", 0},
	{"only", KEY_ONLY, "ID", 0, "run that scenario alone, and show its calls", 0},
	{"list", KEY_LIST, NULL, 0, "list the scenarios", 0},
	{"jobs", 'j', "N", 0, "so many scenarios at a time (default: one for each CPU)", 0},
	{"json", KEY_JSON, NULL, 0, "print one JSON object, for programs", 0},
	{"cflags", KEY_CFLAGS, "A..E", 0,
		"print what a compiler needs to make a client of a kernel module's source", 0},
	{0}};

/* ---- options ---- */

static char letter(struct argp_state *state, const char *arg)
{
	if (strlen(arg) != 1 || *arg < 'A' || *arg > 'E')
		cli_usage(state, "'%s' is no generation; they are A, B, C, D, E", arg);
	return *arg;
}

static unsigned number(struct argp_state *state, const char *arg)
{
	char *end;
	const unsigned long n = strtoul(arg, &end, 10);

	if (*end || n < 1 || n > 64)
		cli_usage(state, "'%s' is no number from 1 to 64", arg);
	return (unsigned)n;
}

static void parse_end(const struct options *o, struct argp_state *state)
{
	if (!o->client && !o->cflags)
		cli_usage(state, "which client?");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'd':
		o->device = arg;
		return 0;
	case 'g':
		o->generation = letter(state, arg);
		return 0;
	case 'j':
		o->jobs = number(state, arg);
		return 0;
	case KEY_QUICK:
		o->quick = true;
		return 0;
	case KEY_KEEP_GOING:
		o->keep_going = true;
		return 0;
	case KEY_ONLY:
		if (o->only)
			cli_usage(state, "one scenario at a time");
		o->only = arg;
		return 0;
	case KEY_LIST:
		o->list = true;
		return 0;
	case KEY_JSON:
		o->json = true;
		return 0;
	case KEY_CFLAGS:
		o->cflags = letter(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		if (o->client)
			cli_usage(state, "one client at a time");
		o->client = arg;
		return 0;
	case ARGP_KEY_END:
		parse_end(o, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- how to compile one ---- */

static int print_cflags(char generation)
{
	struct cli_dirs dirs;
	int rc = cli_find_dirs(&dirs);
	bool installed;

	if (rc)
		return cli_fail("cannot find out where weft is: %s", strerror(-rc));
	installed = strcmp(dirs.lib, WEFT_LIBDIR) == 0;
	printf("-shared -fPIC -D_GNU_SOURCE -I%s -DPEER_MEM_GENERATION=%c%s -L%s -Wl,-rpath,%s "
	       "-Wl,--push-state,--no-as-needed -lweftkshim -l:libibverbs.so.1 "
	       "-Wl,--pop-state\n",
		installed ? WEFT_KSHIM_INSTALLED : WEFT_KSHIM_SOURCE, generation,
		generation < 'D' ? " -DAMD_RDMA_MAJOR=1" : "", dirs.lib, dirs.lib);
	return cli_written();
}

/* ---- running ---- */

static void print_list(const struct plan *plan, const struct record *probe)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct scenario *s = &plan->list[i];
		const bool at_point = s->kind->family >= FAMILY_POINT && s->number;

		printf("%-28s %s%s%s\n", s->id, s->kind->what, at_point ? ": " : "",
			at_point ? probe->point[s->number - 1] : "");
	}
}

/* Keeps the one of that ID. */
static bool keep_only(struct plan *plan, const char *id)
{
	size_t i = 0;

	while (i < plan->count && strcmp(plan->list[i].id, id) != 0)
		i++;
	if (i == plan->count)
		return false;
	plan->list[0] = plan->list[i];
	plan->count = 1;
	return true;
}

static int judge(
	const struct run *run, const struct plan *plan, const struct record *probe, bool json)
{
	struct result *result = calloc(plan->count, sizeof *result);
	const struct report report = {run, probe, plan, result, json};
	int rc;

	if (!result)
		return cli_fail("%s", strerror(ENOMEM));
	run_all(run, plan->list, plan->count, result);
	rc = report_print(&report);
	for (size_t i = 0; i < plan->count; i++)
		free(result[i].record);
	free(result);
	return rc;
}

static int check_planned(const struct options *o, const struct run *run, const struct record *probe)
{
	const bool both = strcmp(run->spec.device, "nvidia") == 0;
	struct plan plan;
	int rc = plan_make(&plan, probe, o->quick, both);

	if (rc) {
		rc = cli_fail("%s", strerror(-rc));
	} else if (o->only && !keep_only(&plan, o->only)) {
		cli_fail("there is no scenario '%s' for %s; --list shows them", o->only, o->client);
		rc = EXIT_USAGE;
	} else if (o->list) {
		print_list(&plan, probe);
		rc = cli_written();
	} else {
		rc = judge(run, &plan, probe, o->json);
	}
	free(plan.list);
	return rc;
}

/* It may be no client at all. */
static void say_no_device(const char *name, char *client)
{
	char libverbs[PATH_MAX + sizeof "/libibverbs.so.1"], why[256];
	struct cli_dirs dirs;

	if (cli_find_dirs(&dirs))
		dirs.lib[0] = 0;
	snprintf(libverbs, sizeof libverbs, "%s/libibverbs.so.1", dirs.lib);
	if (peer_clients_load(&client, 1, libverbs, why, sizeof why))
		cli_fail("%s calls no device that is known; say which by --device", name);
	else
		cli_fail("cannot check %s: %s", name, why);
}

static int check(const struct options *o)
{
	char path[PATH_MAX], why[128];
	const char *client = realpath(o->client, path);
	const int err = errno;
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct run run = {.spec = {.client = client,
				  .device = o->device ? o->device : device_of(o->client),
				  .device_given = o->device},
		.jobs = o->jobs ? o->jobs : (unsigned)cpus,
		.progress = isatty(STDERR_FILENO) && !o->json,
		.keep_going = o->keep_going};
	struct record *probe;
	int rc;

	if (!run.spec.client) {
		cli_fail("cannot open %s: %s", o->client, strerror(err));
		return EXIT_USAGE;
	}
	if (!device_is_library(client, why, sizeof why)) {
		cli_fail("%s is no shared library: %s", o->client, why);
		return EXIT_USAGE;
	}
	if (!run.spec.device) {
		say_no_device(o->client, path);
		return EXIT_USAGE;
	}
	probe = plan_probe(&run, o->generation);
	if (!probe)
		return EXIT_USAGE;
	if (probe->own_device)
		run.spec.device = "own";
	rc = check_planned(o, &run, probe);
	free(probe);
	return rc;
}

/* argv as weft got it. */
static int restart_for_sanitizer(const char *client, int argc, char **argv)
{
	struct cli_dirs dirs;
	char **again;
	int rc;

	if (cli_find_dirs(&dirs))
		return EXIT_OK;
	again = calloc((size_t)argc + 2, sizeof *again);
	if (!again)
		return cli_fail("%s", strerror(ENOMEM));
	again[0] = "weft";
	again[1] = "peercheck";
	memcpy(again + 2, argv + 1, ((size_t)argc - 1) * sizeof *argv);
	rc = sanitizer_preload(client, dirs.self, again);
	free(again);
	return rc;
}

int cmd_peercheck(int argc, char **argv)
{
	static const struct argp argp = {.options = argp_options,
		.parser = parse,
		.args_doc = "CLIENT.so",
		.doc = "Runs a peer memory client through every rule of the API, without GPU, HCA "
		       "or "
		       "root.\vExits 0; 1 if it breaks a rule; 2 if there is no client, or no "
		       "device "
		       "for it.  See weft-peercheck(1)."};
	struct options o = {0};
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (o.cflags)
		return print_cflags(o.cflags);
	rc = restart_for_sanitizer(o.client, argc, argv);
	if (rc)
		return rc;
	keeper_begin();
	return check(&o);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "cli/doctor.h"

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/check.h"
#include "cli/check_peers.h"
#include "cli/check_program.h"
#include "cli/check_system.h"
#include "cli/check_variables.h"
#include "cli/check_weft.h"
#include "cli/check_wire.h"
#include "cli/common/say.h"

enum { KEY_JSON = 256 };

struct check_kind {
	const char *name;
	void (*run)(struct check *c);
};

static const struct check_kind kinds[] = {
	{"kernel", check_kernel},
	{"cpus", check_cpus},
	{"memfd", check_memfd},
	{"peer memory", check_peer_memory},
	{"userfaultfd", check_userfaultfd},
	{"open files", check_nofile},
	{"memory locks", check_memlock},
	{"other rdma", check_other_rdma},
	{"variables", check_variables},
	{"runtime dir", check_runtime_dir},
	{"weftd", check_weftd_file},
	{"fabric", check_weftd_runs},
	{"others", check_other_fabrics},
	{"libibverbs", check_libibverbs},
	{"device files", check_device_files},
	{"peer clients", check_peer_clients},
	{"gpus", check_gpus},
	{"udp port", check_udp_port},
	{"udp room", check_udp_room},
	{"udp batches", check_udp_batches},
	{"udp steering", check_udp_steering},
};

static const char *const results[] = {"ok", "warn", "FAIL"};

static void add_json(json_t *list, const char *name, const struct check *c)
{
	json_array_append_new(
		list, json_pack("{s:s, s:s, s:s, s:s}", "name", name, "result", results[c->result],
			      "text", c->text, "remedy", c->remedy));
}

static void print_line(const char *name, const struct check *c)
{
	printf("%-4s  %-12s  %s%s%s\n", results[c->result], name, c->text, *c->remedy ? "; " : "",
		c->remedy);
	if (!ferror(stdout))
		fflush(stdout); /* shown before the next check, which may take long */
}

struct doctor {
	bool json;
	char **cmd; /* the program to look at, too; NULL: none */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct doctor *doctor = state->input;

	(void)arg;
	switch (key) {
	case KEY_JSON:
		doctor->json = true;
		return 0;
	case ARGP_KEY_ARG:
		doctor->cmd = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void show(json_t *list, const char *name, const struct check *c, bool as_json)
{
	if (as_json)
		add_json(list, name, c);
	else
		print_line(name, c);
}

/* How many failed. */
static int check_all(const struct doctor *doctor, json_t *list)
{
	int failed = 0;
	struct check c;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		c = (struct check){0};
		kinds[i].run(&c);
		failed += c.result == CHECK_FAIL;
		show(list, kinds[i].name, &c, doctor->json);
	}
	if (doctor->cmd) {
		c = (struct check){0};
		check_program(&c, doctor->cmd);
		failed += c.result == CHECK_FAIL;
		show(list, "program", &c, doctor->json);
	}
	return failed;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", KEY_JSON, NULL, 0, "print one JSON object, for programs", 0}, {0}};
	static const struct argp argp = {.options = options,
		.parser = parse,
		.args_doc = "[[--] PROGRAM [ARGUMENT...]]",
		.doc = "Checks whether RDMA programs can run on Weft here, and of PROGRAM whether "
		       "it can be served.\vOne line for each check: "
		       "ok, warn or FAIL, what was found, and what to do about it.  Exits 1 if one "
		       "fails.  May start weftd, which leaves when idle; does not run PROGRAM."};
	json_t *list = json_array();
	struct doctor doctor = {0};
	int failed;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &doctor);
	failed = check_all(&doctor, list);
	if (doctor.json) {
		json_t *root = json_pack("{s:s, s:i, s:o}", "version", WEFT_VERSION, "failed",
			failed, "checks", json_incref(list));

		json_dumpf(root, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(root);
	}
	json_decref(list);
	return cli_written() || failed ? EXIT_FAILED : EXIT_OK;
}

// SPDX-License-Identifier: BSD-3-Clause
/* weft fault: rules of faults, in the processes of a fabric that runs. */
#include "cli/fault.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/commands.h"
#include "cli/common/fabric.h"
#include "cli/common/say.h"
#include "rdv/admin.h"
#include "roce/fault/rules.h"

enum { KEY_JSON = 256 };

struct fault_options {
	const char *fabric;
	int32_t pid; /* 0: all processes */
	bool json;
	char text[FAULT_TEXT]; /* the rules, one a line */
	size_t len;
	unsigned args; /* how many rules were given */
};

static const struct argp_child children[] = {{&cli_fabric_option_argp, 0, NULL, 0}, {0}};

#define PID_OPTION                                                                                 \
	{                                                                                          \
		"pid", 'p', "PID", 0, "of one process (default: all, and those to come)", 0        \
	}

static int32_t pid_of(struct argp_state *state, const char *arg)
{
	char *end;
	long pid = strtol(arg, &end, 10);

	if (end == arg || *end || pid <= 0 || pid > INT32_MAX)
		cli_usage(state, "'%s' is no process id", arg);
	return pid;
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct fault_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->fabric;
		return 0;
	case 'p':
		o->pid = pid_of(state, arg);
		return 0;
	case KEY_JSON:
		o->json = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_usage(state, "takes no arguments");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- set, clear ---- */

static void add_rule(struct argp_state *state, struct fault_options *o, const char *arg)
{
	size_t len = strlen(arg);
	struct fault_rules rules;
	struct fault_error why;
	char text[256];

	o->args++;
	if (fault_parse(arg, len, &rules, &why)) {
		fault_error_text(&why, text, sizeof text);
		cli_usage(state, "argument %u, %s%s", o->args, text,
			o->args > 1 ? "; a rule is one argument, as 'drop in 1%'" : "");
	}
	if (o->len + len + 2 > sizeof o->text)
		cli_usage(state, "the rules are longer than %d bytes", FAULT_TEXT - 2);
	o->len += sprintf(o->text + o->len, "%s;", arg);
}

/* Rules that are right by themselves may be too many together. */
static void check_all(struct argp_state *state, const struct fault_options *o)
{
	struct fault_rules rules;
	struct fault_error why;

	if (!o->args)
		cli_usage(state, "which rules?  See weft-fault(1)");
	if (fault_parse(o->text, o->len, &rules, &why))
		cli_usage(state, "%s", why.why);
	if (!rules.n)
		cli_usage(state, "there is no rule in that; 'weft fault clear' ends them");
}

static error_t parse_set(int key, char *arg, struct argp_state *state)
{
	struct fault_options *o = state->input;

	if (key == ARGP_KEY_ARG) {
		add_rule(state, o, arg);
		return 0;
	}
	if (key == ARGP_KEY_END) {
		check_all(state, o);
		return 0;
	}
	return parse_common(key, arg, state);
}

static int not_there(const struct fault_options *o, int rc)
{
	if (rc == -ENOTCONN)
		return cli_fail(
			"no weftd serves fabric '%s'; 'weft up' or any program on Weft starts it",
			cli_fabric_name(o->fabric));
	if (rc == -ESRCH)
		return cli_fail("process %d has no device of fabric '%s' open; 'weft status' "
				"shows who has",
			(int)o->pid, cli_fabric_name(o->fabric));
	return EXIT_FAILED;
}

static int tell(const struct fault_options *o, const char *what)
{
	uint32_t n;
	int rc = rdv_fault(o->fabric, o->pid, o->text, &n);

	if (rc)
		return not_there(o, rc);
	printf("%s %u process%s of fabric '%s'%s\n", what, n, n == 1 ? "" : "es",
		cli_fabric_name(o->fabric), o->pid ? "" : ", and those to come");
	return cli_written();
}

static int fault_set(int argc, char **argv)
{
	static const struct argp_option options[] = {PID_OPTION, {0}};
	static const struct argp argp = {.options = options,
		.parser = parse_set,
		.args_doc = "RULE...",
		.doc = "Injects faults into packets, by these rules instead of those before.",
		.children = children};
	struct fault_options o = {0};

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	return tell(&o, "these faults happen to");
}

static int fault_clear(int argc, char **argv)
{
	static const struct argp_option options[] = {PID_OPTION, {0}};
	static const struct argp argp = {.options = options,
		.parser = parse_common,
		.doc = "Injects no faults any more.",
		.children = children};
	struct fault_options o = {0};

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	return tell(&o, "no faults happen to");
}

/* ---- list ---- */

static bool is_asked_for(const struct fault_options *o, json_t *process)
{
	return !o->pid || json_integer_value(json_object_get(process, "pid")) == o->pid;
}

static void print_process(json_t *process)
{
	json_t *counts, *faults = json_object_get(process, "faults");
	const char *rule;

	if (!json_object_size(faults))
		return;
	printf("process %lld (%s):\n",
		(long long)json_integer_value(json_object_get(process, "pid")),
		json_string_value(json_object_get(process, "comm")));
	json_object_foreach(faults, rule, counts)
	{
		printf("  %-40s  seen %lld, done %lld\n", rule,
			(long long)json_integer_value(json_object_get(counts, "seen")),
			(long long)json_integer_value(json_object_get(counts, "done")));
	}
}

/* What weft status has of it: {"faults": "...", "processes": [{"pid", "comm", "faults"}]}. */
static json_t *extract(const struct fault_options *o, json_t *status)
{
	json_t *all = json_array(), *process, *one;
	size_t i;

	json_array_foreach(json_object_get(status, "processes"), i, process)
	{
		if (!is_asked_for(o, process))
			continue;
		one = json_pack("{s:O,s:O,s:O}", "pid", json_object_get(process, "pid"), "comm",
			json_object_get(process, "comm"), "faults",
			json_object_get(process, "faults"));
		json_array_append_new(all, one);
	}
	return json_pack(
		"{s:O,s:o}", "faults", json_object_get(status, "faults"), "processes", all);
}

static void print_list(const struct fault_options *o, json_t *list)
{
	const char *rules = json_string_value(json_object_get(list, "faults"));
	json_t *process;
	char *text;
	size_t i;

	if (o->json) {
		text = json_dumps(list, JSON_INDENT(2));
		puts(text ? text : "");
		free(text);
		return;
	}
	if (!o->pid)
		printf("of all processes: %s\n", rules && *rules ? rules : "none");
	json_array_foreach(json_object_get(list, "processes"), i, process)
	{
		print_process(process);
	}
}

static int fault_list(int argc, char **argv)
{
	static const struct argp_option options[] = {PID_OPTION,
		{"json", KEY_JSON, NULL, 0, "print one JSON object, for programs", 0}, {0}};
	static const struct argp argp = {.options = options,
		.parser = parse_common,
		.doc = "Shows the rules, to how many packets each applied, and to how many it did "
		       "something.",
		.children = children};
	struct fault_options o = {0};
	json_t *status, *list;
	char *text;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	rc = rdv_status_json(o.fabric, &text);
	if (rc)
		return not_there(&o, rc);
	status = json_loads(text, 0, NULL);
	free(text);
	list = extract(&o, status);
	json_decref(status);
	if (!list)
		return cli_fail("weftd's answer is not understood; restart it with 'weft down'");
	rc = o.pid && !json_array_size(json_object_get(list, "processes")) ? not_there(&o, -ESRCH)
									   : EXIT_OK;
	if (!rc)
		print_list(&o, list);
	json_decref(list);
	return rc ? rc : cli_written();
}

int cmd_fault(int argc, char **argv)
{
	static const struct command list[] = {
		{"set", "inject faults", fault_set},
		{"list", "show rules and what they did", fault_list},
		{"clear", "inject none any more", fault_clear},
		{0},
	};
	static const struct commands commands = {.name = "weft fault",
		.doc = "Injects faults into the RoCE packets of processes that run.\v",
		.see = "weft-fault(1)",
		.list = list};

	return commands_run(&commands, argc, argv);
}

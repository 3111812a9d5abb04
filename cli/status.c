// SPDX-License-Identifier: BSD-3-Clause
/* weft status: weftd's JSON as it is, or as tables for people. */
#include "cli/status.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/fabric.h"
#include "cli/common/say.h"
#include "rdv/admin.h"

enum { KEY_JSON = 256, CELL = 128, MAX_COLUMNS = 16, NAME_WIDTH = 14 };

struct column {
	const char *key;
	int width;
};

struct status {
	const char *fabric;
	bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct status *status = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &status->fabric;
		return 0;
	case KEY_JSON:
		status->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void cell(const json_t *value, char out[CELL]);

/* Members of an object within an object: "seen 5 done 1". */
static void cell_of_members(const json_t *object, char out[CELL])
{
	const char *key;
	json_t *value;
	size_t n = 0;

	*out = '\0';
	json_object_foreach((json_t *)object, key, value)
	{
		char text[CELL];

		cell(value, text);
		n += snprintf(out + n, CELL - n, "%s%s %s", n ? " " : "", key, text);
		if (n >= CELL)
			return;
	}
}

static void cell(const json_t *value, char out[CELL])
{
	char *text = NULL;

	if (json_is_string(value))
		text_escape(out, CELL, json_string_value(value), json_string_length(value));
	else if (json_is_boolean(value))
		snprintf(out, CELL, "%s", json_is_true(value) ? "yes" : "no");
	else if (json_is_real(value))
		snprintf(out, CELL, "%.1f", json_real_value(value));
	else if (!value || json_is_null(value))
		strcpy(out, "-");
	else if (json_is_object(value))
		cell_of_members(value, out);
	else
		snprintf(out, CELL, "%s",
			(text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT)));
	free(text);
}

/* The members of an object that are not 0, on one line. */
static void print_members(const char *name, json_t *object)
{
	const char *key, *comma = "";
	char text[CELL];
	json_t *value;

	printf("%-*s ", NAME_WIDTH, name);
	json_object_foreach(object, key, value)
	{
		if (json_is_integer(value) && !json_integer_value(value))
			continue;
		cell(value, text);
		printf("%s%s %s", comma, key, text);
		comma = ", ";
	}
	puts(*comma ? "" : "none");
}

/* The columns of a table: the first row's members but for objects.  Their number. */
static int columns_of(json_t *rows, struct column columns[MAX_COLUMNS])
{
	const char *key;
	json_t *value, *row;
	char text[CELL];
	size_t i;
	int n = 0;

	json_object_foreach(json_array_get(rows, 0), key, value)
	{
		if (n < MAX_COLUMNS && !json_is_object(value))
			columns[n++] = (struct column){key, strlen(key)};
	}
	json_array_foreach(rows, i, row)
	{
		for (int c = 0; c < n; c++) {
			cell(json_object_get(row, columns[c].key), text);
			if ((int)strlen(text) > columns[c].width)
				columns[c].width = strlen(text);
		}
	}
	return n;
}

static void print_table(const char *name, json_t *rows)
{
	struct column columns[MAX_COLUMNS];
	int n = columns_of(rows, columns);
	char text[CELL];
	json_t *row;
	size_t i;

	printf("\n%s:\n", name);
	for (int c = 0; c < n; c++)
		printf("  %-*s", columns[c].width, columns[c].key);
	putchar('\n');
	json_array_foreach(rows, i, row)
	{
		for (int c = 0; c < n; c++) {
			cell(json_object_get(row, columns[c].key), text);
			printf("  %-*s", columns[c].width, text);
		}
		putchar('\n');
	}
}

/* What did not fit into a table: the objects in its rows, a line each. */
static void print_details(json_t *rows)
{
	const char *key;
	json_t *row, *value;
	char first[CELL], name[2 * CELL];
	size_t i;

	json_array_foreach(rows, i, row)
	{
		cell(json_object_iter_value(json_object_iter(row)), first);
		json_object_foreach(row, key, value)
		{
			snprintf(name, sizeof name, "  %s %s", first, key);
			if (json_object_size(value))
				print_members(name, value);
		}
	}
}

static bool is_table(const json_t *value)
{
	return json_is_array(value) && json_is_object(json_array_get(value, 0));
}

/* Whatever weftd tells: values first, then groups of values, then tables. */
static void print_all(json_t *object)
{
	const char *key;
	char text[CELL];
	json_t *value;

	json_object_foreach(object, key, value)
	{
		cell(value, text);
		if (json_is_object(value))
			print_members(key, value);
		else if (!json_is_array(value))
			printf("%-*s %s\n", NAME_WIDTH, key, text);
	}
	json_object_foreach(object, key, value)
	{
		if (!is_table(value))
			continue;
		print_table(key, value);
		print_details(value);
	}
}

static int print_human(const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, 0, &error);

	if (!json_is_object(root)) {
		json_decref(root);
		return cli_fail(
			"weftd's answer is not understood (%s); restart it with 'weft down'",
			error.text);
	}
	print_all(root);
	json_decref(root);
	return EXIT_OK;
}

int cmd_status(int argc, char **argv)
{
	static const struct argp_child children[] = {{&cli_fabric_argp, 0, NULL, 0}, {0}};
	static const struct argp_option options[] = {
		{"json", KEY_JSON, NULL, 0, "print one JSON object, for programs", 0}, {0}};
	static const struct argp argp = {.options = options,
		.parser = parse,
		.doc = "Shows what weftd serves.\vNever starts weftd; exits 1 if it does not run.",
		.children = children};
	struct status status = {0};
	char *text;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &status);
	rc = rdv_status_json(status.fabric, &text);
	if (rc == -ENOTCONN)
		return cli_fail(
			"no weftd serves fabric '%s'; 'weft up' or any program on Weft starts it",
			cli_fabric_name(status.fabric));
	if (rc)
		return EXIT_FAILED;
	if (status.json)
		puts(text);
	else
		rc = print_human(text);
	free(text);
	return rc ? rc : cli_written();
}

// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check_variables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check.h"

static const char seconds[] = "seconds";

/* What each may be, divided by '|'; NULL: whoever reads it says what is wrong with it. */
static const struct {
	const char *name, *values;
} known[] = {
	{"WEFT_AUTOSTART", "0|1"},
	{"WEFT_CRASH", NULL},
	{"WEFT_CRASH_MARKS", NULL},
	{"WEFT_CRASH_REGIONS", NULL},
	{"WEFT_DAEMON", NULL},
	{"WEFT_FABRIC", NULL},
	{"WEFT_FAULT", NULL},
	{"WEFT_GPU", "0|1"},
	{"WEFT_HOSTS", NULL},
	{"WEFT_IDLE_EXIT", seconds},
	{"WEFT_KSHIM_BAR_MIB", NULL},
	{"WEFT_LOG", NULL},
	{"WEFT_MOVER", "cma|agent"},
	{"WEFT_NODE", NULL},
	{"WEFT_PEER_CLIENTS", NULL},
	{"WEFT_RUNTIME_DIR", NULL},
	{"WEFT_SCIF_CHECK", NULL},
	{"WEFT_SCIF_NODES", NULL},
	{"WEFT_SCIF_PORTS", NULL},
	{"WEFT_SHARE", "auto|always|never"},
	{"WEFT_SPIN_US", NULL},
	{"WEFT_TEST_SMALL", NULL},
	{"WEFT_WIRE", "auto|always|never"},
};

static bool is_one_of(const char *value, const char *values)
{
	const size_t len = strlen(value);

	for (const char *at = values; at; at = strchr(at, '|')) {
		at += *at == '|';
		if (!strncmp(at, value, len) && (!at[len] || at[len] == '|'))
			return true;
	}
	return false;
}

static bool is_seconds(const char *value)
{
	char *end;
	double n = strtod(value, &end);

	return end != value && !*end && n >= 0;
}

static bool fits(const char *value, const char *values)
{
	if (!values || !*value)
		return true;
	return values == seconds ? is_seconds(value) : is_one_of(value, values);
}

/* Says what is wrong with a variable NAME=value; false: nothing. */
static bool is_wrong(struct check *c, const char *variable)
{
	const size_t len = strcspn(variable, "=");
	const char *value = variable + len + (variable[len] == '=');

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strlen(known[i].name) != len || strncmp(known[i].name, variable, len) != 0)
			continue;
		if (fits(value, known[i].values))
			return false;
		check_set(c, CHECK_WARN, "correct or unset it", "%s=%.80s is %s %s", known[i].name,
			value, known[i].values == seconds ? "no number of" : "none of",
			known[i].values);
		return true;
	}
	check_set(c, CHECK_WARN, "see weft(7)", "Weft has no variable %.*s",
		len < 80 ? (int)len : 80, variable);
	return true;
}

void check_variables(struct check *c)
{
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, "WEFT_", 5) && is_wrong(c, *e))
			return;
	check_set(c, CHECK_OK, NULL, "each that begins with WEFT_ is known");
}

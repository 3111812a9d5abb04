// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check_variables.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check.h"
#include "roce/fault/rules.h"

static const char seconds[] = "seconds";
static const char log_spec[] = "level[:file]";
static const char fault_rules[] = "rules";

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
	{"WEFT_FAULT", fault_rules},
	{"WEFT_GPU", "0|1"},
	{"WEFT_HOSTS", NULL},
	{"WEFT_IDLE_EXIT", seconds},
	{"WEFT_KSHIM_BAR_MIB", NULL},
	{"WEFT_LOG", log_spec},
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
	return values == seconds ? is_seconds(value) : is_one_of(value, values);
}

/* ---- values of more than one word: each says what is wrong, false: nothing ---- */

/* A file that is not there yet is made there by who writes to it. */
static int try_log_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char dir[PATH_MAX];
	char *slash;

	if (fd >= 0)
		return close(fd);
	if (errno != ENOENT)
		return -errno;
	snprintf(dir, sizeof dir, "%s", path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	return access(slash ? dir : ".", W_OK | X_OK) ? -errno : 0;
}

static bool log_is_wrong(struct check *c, const char *value)
{
	const size_t n = strcspn(value, ":");
	char level[16];
	int rc;

	snprintf(level, sizeof level, "%.*s", n < sizeof level ? (int)n : (int)sizeof level - 1,
		value);
	if (!is_one_of(level, "error|warn|info|debug")) {
		check_set(c, CHECK_WARN, "correct or unset it",
			"WEFT_LOG=%.80s is none of error|warn|info|debug, with :FILE or without",
			value);
		return true;
	}
	rc = value[n] && value[n + 1] ? try_log_file(value + n + 1) : 0;
	if (rc)
		check_set(c, CHECK_WARN, "name a file that can be written in WEFT_LOG",
			"WEFT_LOG=%.80s: the file cannot be opened: %s", value, strerror(-rc));
	return rc;
}

static bool fault_is_wrong(struct check *c, const char *value)
{
	struct fault_rules rules;
	struct fault_error why;
	char said[256];

	if (!fault_parse(value, strlen(value), &rules, &why))
		return false;
	fault_error_text(&why, said, sizeof said);
	check_set(c, CHECK_WARN, "correct it as weft-fault(1) says, or unset it",
		"WEFT_FAULT=%.80s has no effect: %s", value, said);
	return true;
}

/* Says what is wrong with a variable NAME=value; false: nothing. */
static bool is_wrong(struct check *c, const char *variable)
{
	const size_t len = strcspn(variable, "=");
	const char *value = variable + len + (variable[len] == '=');

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strlen(known[i].name) != len || strncmp(known[i].name, variable, len) != 0)
			continue;
		if (!*value || !known[i].values)
			return false;
		if (known[i].values == log_spec)
			return log_is_wrong(c, value);
		if (known[i].values == fault_rules)
			return fault_is_wrong(c, value);
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

/* One more behind those of *c, each with its remedy; what there is no room for is left away. */
static void add(struct check *c, const struct check *more)
{
	char text[sizeof c->text + sizeof c->remedy + 2];

	snprintf(text, sizeof text, "%s; %s", c->text, c->remedy);
	if (c->result == CHECK_OK)
		*c = *more;
	else if (strlen(text) + 2 + strlen(more->text) < sizeof c->text)
		check_set(c, CHECK_WARN, more->remedy, "%s; %s", text, more->text);
}

void check_variables(struct check *c)
{
	struct check one;

	check_set(c, CHECK_OK, NULL, "each that begins with WEFT_ is known");
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, "WEFT_", 5) && is_wrong(&one, *e))
			add(c, &one);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "cli/topo_live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/dirs.h"
#include "cli/common/fabric.h"
#include "cli/common/say.h"
#include "rdv/topology.h"
#include "topo/build.h"

/* The exit code; what is not said here was logged. */
static int failed(const char *fabric, int rc)
{
	const char *name = cli_fabric_name(fabric);

	switch (rc) {
	case -ENOTCONN:
		return cli_fail("no weftd serves fabric '%s'; 'weft up -F %s FILE|SPEC' starts one",
			name, name);
	case -EOPNOTSUPP:
		return cli_fail("fabric '%s' has no topology; 'weft up -F NAME FILE|SPEC' starts a "
				"fabric with one",
			name);
	case -EMSGSIZE:
		return cli_fail("the command is too long");
	default:
		return EXIT_FAILED;
	}
}

int topo_live_text(const char *fabric, enum proto_topo_form form, char **text)
{
	struct cli_dirs dirs;
	size_t len;
	int rc;

	cli_find_dirs(&dirs);
	rc = rdv_topology(fabric, form, text, &len);
	return rc ? failed(fabric, rc) : 0;
}

int topo_live_load(const char *fabric, struct netlist *n, json_t **live)
{
	char error[TOPO_ERROR], *text;
	int rc = topo_live_text(fabric, PROTO_TOPO_JSON, &text);

	if (rc)
		return rc;
	*live = json_loads(text, 0, NULL);
	free(text);
	rc = topo_live_text(fabric, PROTO_TOPO_NET, &text);
	if (!rc && netlist_parse(n, cli_fabric_name(fabric), text, strlen(text), error)) {
		rc = cli_fail("%s", error);
		free(text);
	} else if (!rc) {
		free(text);
	}
	if (rc)
		json_decref(*live);
	return rc;
}

/* ---- commands ---- */

/* What comes after it finds the changed fabric; one that is started anew does not. */
static int not_kept(const char *fabric, const char *line, int error)
{
	return cli_fail("'%s' was done, but cannot be kept in the topology of fabric '%s': %s; a "
			"weftd that is started anew does not know of it",
		line, cli_fabric_name(fabric), strerror(error));
}

/* number: of the line of standard input that it is, or 0. */
static int refused(const char *text, unsigned number)
{
	return number ? cli_fail("line %u: %s", number, text) : cli_fail("%s", text);
}

static int do_one(const char *fabric, const char *line, unsigned number)
{
	struct proto_topo_done done;
	char *text;
	int rc = rdv_topology_do(fabric, line, &done, &text);

	if (rc)
		return failed(fabric, rc);
	if (done.error < 0)
		rc = refused(text, number);
	else
		fputs(text, stdout);
	free(text);
	if (done.error > 0)
		rc = not_kept(fabric, line, done.error);
	if (done.wait_s) {
		fflush(stdout);
		for (unsigned left = done.wait_s; left;)
			left = sleep(left);
	}
	return rc;
}

/* Stops at the first that is refused. */
static int do_stdin(const char *fabric)
{
	char *line = NULL;
	size_t room = 0;
	unsigned number = 0;
	ssize_t n;
	int rc = 0;

	while (!rc && (n = getline(&line, &room, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		rc = do_one(fabric, line, ++number);
		fflush(stdout);
	}
	free(line);
	return rc;
}

int topo_live_do(const char *fabric, const char *line)
{
	struct cli_dirs dirs;

	cli_find_dirs(&dirs);
	return strcmp(line, "-") ? do_one(fabric, line, 0) : do_stdin(fabric);
}

/* ---- parts of a table ---- */

/* Ports that a subnet manager addresses: all of an adapter, the first of a switch. */
static size_t n_managed(const json_t *node, const json_t *ports)
{
	const char *kind = json_string_value(json_object_get(node, "kind"));

	return kind && !strcmp(kind, "switch") ? 1 : json_array_size(ports);
}

static void join(const json_t *live, uint32_t number, const char *member, char *out, size_t size)
{
	const json_t *node = json_array_get(json_object_get(live, "nodes"), number);
	const json_t *ports = json_object_get(node, "ports");
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < n_managed(node, ports) && at < size; i++) {
		const json_t *v = json_object_get(json_array_get(ports, i), member);

		at += snprintf(out + at, size - at, "%s", i ? "," : "");
		if (at < size && json_is_integer(v))
			at += snprintf(out + at, size - at, "%d", (int)json_integer_value(v));
		else if (at < size && v)
			at += snprintf(out + at, size - at, "%s", json_string_value(v));
	}
}

void topo_live_lids(const json_t *live, uint32_t node, char *out, size_t size)
{
	join(live, node, "lid", out, size);
}

void topo_live_states(const json_t *live, uint32_t node, char *out, size_t size)
{
	join(live, node, "state", out, size);
}

/* ---- routes ---- */

/* That of the first port that is ACTIVE, else the first one; 0: there is none. */
static unsigned choose_lid(const json_t *live, uint32_t number)
{
	const json_t *node = json_array_get(json_object_get(live, "nodes"), number);
	const json_t *ports = json_object_get(node, "ports");
	unsigned first = 0;

	for (size_t i = 0; i < n_managed(node, ports); i++) {
		const json_t *port = json_array_get(ports, i);
		unsigned lid = (unsigned)json_integer_value(json_object_get(port, "lid"));
		const char *state = json_string_value(json_object_get(port, "state"));

		if (lid && state && !strcmp(state, "ACTIVE"))
			return lid;
		first = first ? first : lid;
	}
	return first;
}

/* A LID of a node; 0 after printing why. */
static unsigned lid_of(
	const char *fabric, const struct netlist *n, const json_t *live, const char *name)
{
	uint32_t node = topo_find(&n->topo, name);
	unsigned lid = node == TOPO_NONE ? 0 : choose_lid(live, node);

	if (node == TOPO_NONE)
		cli_fail("fabric '%s' has no node '%s'; 'weft topo -F %s' lists them",
			cli_fabric_name(fabric), name, cli_fabric_name(fabric));
	else if (!lid)
		cli_fail("node '%s' has no LID: no subnet manager has brought it up", name);
	return lid;
}

static int one_way(const char *fabric, unsigned from, unsigned to)
{
	char line[40];

	snprintf(line, sizeof line, "Route %u %u", from, to);
	return do_one(fabric, line, 0);
}

int topo_live_route(const char *fabric, const char *from, const char *to)
{
	unsigned from_lid, to_lid;
	struct netlist n;
	json_t *live;
	int rc = topo_live_load(fabric, &n, &live), back;

	if (rc)
		return rc;
	from_lid = lid_of(fabric, &n, live, from);
	to_lid = from_lid ? lid_of(fabric, &n, live, to) : 0;
	json_decref(live);
	netlist_free(&n);
	if (!to_lid)
		return EXIT_FAILED;
	rc = one_way(fabric, from_lid, to_lid);
	back = one_way(fabric, to_lid, from_lid);
	return rc ? rc : back;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/dirs.h"
#include "cli/common/fabric.h"
#include "cli/common/say.h"
#include "rdv/paths.h"
#include "rdv/topology.h"
#include "topo/build.h"
#include "topo/netlist.h"

enum { NEAR = 3, WORD = TOPO_TEXT_MAX + 1 };

/* Letters to be changed, put in or left out to make b of a; case does not count. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[WORD + 1];
	size_t n = strnlen(b, WORD);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; *a; a++, i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			unsigned same = corner + (strncasecmp(a, b + j - 1, 1) != 0);
			unsigned least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

			corner = row[j];
			row[j] = same < least ? same : least;
		}
	}
	return row[n];
}

struct near {
	const char *name;
	unsigned far;
};

/* Keeps the nearest, in order. */
static void consider(struct near best[NEAR], const char *wanted, const char *name)
{
	struct near n = {name, distance(wanted, name)};

	for (int i = 0; i < NEAR; i++) {
		if (best[i].name && !strcmp(best[i].name, n.name))
			return;
		if (!best[i].name || n.far < best[i].far) {
			struct near last = best[i];

			best[i] = n;
			n = last;
			if (!n.name)
				return;
		}
	}
}

/* The exit code. */
static int unknown(const char *fabric, const char *wanted)
{
	char error[TOPO_ERROR], list[NEAR * (WORD + 8)] = "", *text = NULL;
	struct near best[NEAR] = {{0}};
	struct netlist n = {0};
	size_t len, at = 0;

	if (!rdv_topology(fabric, PROTO_TOPO_NET, &text, &len) &&
		!netlist_parse(&n, "topology", text, len, error))
		for (uint32_t i = 0; i < n.topo.n_nodes; i++) {
			consider(best, wanted, n.topo.nodes[i].id);
			consider(best, wanted, n.topo.nodes[i].description);
		}
	for (int i = 0; i < NEAR && best[i].name; i++)
		at += snprintf(list + at, sizeof list - at, "%s'%s'", i ? ", " : "", best[i].name);
	cli_fail("fabric '%s' has no node '%s'; near it are %s ('weft topo -F %s' lists all)",
		cli_fabric_name(fabric), wanted, *list ? list : "none", cli_fabric_name(fabric));
	free(text);
	netlist_free(&n);
	return EXIT_FAILED;
}

static int no_files(const char *fabric, const char *name, int err)
{
	struct rdv_paths p;
	bool known = !rdv_paths_open(&p, fabric);

	cli_fail("weftd cannot write the device files of node '%s' to %s: %s; make room there",
		name, known ? p.dir : "its runtime directory", strerror(err));
	if (known)
		rdv_paths_close(&p);
	return EXIT_FAILED;
}

int cli_find_node(const char *fabric, const char *name, uint32_t *number)
{
	struct proto_node_found found;
	struct cli_dirs dirs;
	int rc;

	cli_find_dirs(&dirs);
	rc = rdv_find_node(fabric, name, &found);
	switch (rc) {
	case 0:
		*number = found.number;
		return found.files_errno ? no_files(fabric, name, (int)found.files_errno) : 0;
	case -ENOENT:
		return unknown(fabric, name);
	case -ENOTCONN:
	case -EOPNOTSUPP:
		break;
	default:
		return EXIT_FAILED; /* it was logged */
	}
	if (rdv_node_number(name) < 0) {
		cli_fail("bad node '%s'; use a number from 0 to 65535: fabric '%s' has no topology",
			name, cli_fabric_name(fabric));
		return EXIT_USAGE;
	}
	*number = rdv_node_number(name);
	return 0;
}

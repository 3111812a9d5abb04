// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/look.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "rdv/admin.h"
#include "rdv/paths.h"
#include "rdv/topology.h"

static _Atomic uint64_t looked_ns; /* when weftd was last looked for */

void rdv_no_node(const char *fabric)
{
	static _Atomic bool told;
	const char *node = secure_getenv("WEFT_NODE");

	if (atomic_exchange_explicit(&told, true, memory_order_relaxed))
		return;
	if (rdv_node_number(node) < 0)
		log_line(LOG_LVL_ERROR,
			"fabric \"%s\" has no node \"%s\": WEFT_NODE is a number from 0 to 65535, "
			"or \"weft0\"; names are for weft run --node; correct or unset WEFT_NODE",
			fabric, node);
	else
		log_line(LOG_LVL_ERROR,
			"fabric \"%s\" has no node %s; correct or unset WEFT_NODE: weft topo -F %s "
			"lists the nodes",
			fabric, node, fabric);
}

/* Has that node of a topology no tree yet? */
static bool lacks_tree(int node)
{
	char tree[32];
	struct rdv_paths p;
	bool lacks;

	if (rdv_paths_open(&p, NULL))
		return false;
	snprintf(tree, sizeof tree, "tree.%d", node);
	lacks = rdv_has_file(&p, "topo") && !rdv_has_file(&p, tree);
	rdv_paths_close(&p);
	return lacks;
}

/* weftd makes the tree of a node that somebody asks for. */
static void look_for_node(void)
{
	int node = rdv_node_number(secure_getenv("WEFT_NODE"));
	struct proto_node_found found;
	char name[16];

	if (node > 0 && lacks_tree(node) && !rdv_ping(NULL, NULL)) {
		snprintf(name, sizeof name, "%010d", node); /* a number, not an id like one */
		switch (rdv_find_node(NULL, name, &found)) {
		case 0:
			if (found.files_errno)
				log_line(LOG_LVL_ERROR, "there are no device files of node %d: %s",
					node, strerror((int)found.files_errno));
			break;
		case -ENOENT:
			node = -ENOENT;
			break;
		}
	}
	if (node < 0)
		rdv_no_node(rdv_fabric_name());
}

void rdv_look(void)
{
	uint64_t now = clock_coarse_ns(), before;
	const char *autostart = secure_getenv("WEFT_AUTOSTART");

	before = atomic_load_explicit(&looked_ns, memory_order_relaxed);
	if (before && now - before < NSEC_PER_SEC)
		return;
	if (!autostart || strcmp(autostart, "0"))
		rdv_start(NULL, false, NULL);
	look_for_node();
	atomic_store_explicit(&looked_ns, clock_coarse_ns(), memory_order_relaxed);
}

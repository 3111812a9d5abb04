// SPDX-License-Identifier: BSD-3-Clause
#include "shim/root.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdv/admin.h"
#include "rdv/look.h"
#include "rdv/paths.h"
#include "shim/next.h"

enum { UNKNOWN, PUBLISHING, KNOWN };

static _Atomic int state;
static char known[PATH_MAX];

/*
 * The tree of the node of WEFT_NODE: a fabric with a topology has one for each but 0; without one
 * all nodes share that of 0.
 */
static bool tree_of_node(const char *dir, const char *name, char path[2 * PATH_MAX])
{
	int (*real_access)(const char *, int) = next(NEXT_ACCESS);
	int node = rdv_node_number(secure_getenv("WEFT_NODE"));

	if (node > 0 && snprintf(path, 2 * PATH_MAX, "%s/%s.tree.%d", dir, name, node) < PATH_MAX &&
		!real_access(path, F_OK))
		return true;
	return snprintf(path, 2 * PATH_MAX, "%s/%s.tree", dir, name) < PATH_MAX;
}

/* False, and root untouched, if there is no runtime directory: nothing to remember. */
static bool find_root(char *root)
{
	char *(*real_realpath)(const char *, char *) = next(NEXT_REALPATH);
	char dir[PATH_MAX], path[2 * PATH_MAX];
	struct rdv_paths p;
	bool ok;

	if (rdv_paths_open(&p, NULL))
		return false;
	ok = real_realpath(p.dir, dir) != NULL;
	rdv_paths_close(&p);
	if (!ok || !tree_of_node(dir, p.name, path))
		return false;
	strcpy(root, path);
	return true;
}

/* Nobody waits for another thread here: it may be the one that our signal interrupted. */
void tree_root(char root[PATH_MAX])
{
	int was = UNKNOWN;

	strcpy(root, "/proc/self/no-weft-tree");
	if (!environ) /* libc is not initialised yet: where is not known */
		return;
	rdv_look();
	if (atomic_load_explicit(&state, memory_order_acquire) == KNOWN) {
		strcpy(root, known);
		return;
	}
	if (!find_root(root))
		return;
	if (atomic_compare_exchange_strong(&state, &was, PUBLISHING)) {
		strcpy(known, root);
		atomic_store_explicit(&state, KNOWN, memory_order_release);
	}
}

void tree_refresh_peers(void)
{
	if (environ)
		rdv_ping(NULL, NULL);
}

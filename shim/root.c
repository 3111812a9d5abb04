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

/* False, and root untouched, if there is no runtime directory: nothing to remember. */
static bool find_root(char *root)
{
	char *(*real_realpath)(const char *, char *) = next(NEXT_REALPATH);
	char dir[PATH_MAX], path[2 * PATH_MAX], tree[RDV_TREE_NAME];
	struct rdv_paths p;
	bool ok;

	if (rdv_paths_open(&p, NULL))
		return false;
	ok = real_realpath(p.dir, dir) != NULL;
	rdv_tree_name(&p, tree);
	rdv_paths_close(&p);
	if (!ok || snprintf(path, sizeof path, "%s/%s", dir, tree) >= PATH_MAX)
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

void tree_refresh(void)
{
	if (environ)
		rdv_ping(NULL, NULL);
}

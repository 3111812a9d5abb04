// SPDX-License-Identifier: BSD-3-Clause
#include "umad/root.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdv/look.h"
#include "rdv/paths.h"

int root_node(void)
{
	int node = rdv_node_number(secure_getenv("WEFT_NODE"));

	return node < 0 ? -ENODEV : node;
}

/*
 * The tree of that node: a fabric with a topology has one for each but 0; without one all nodes
 * share that of 0.  Its length.
 */
static int tree_of_node(const struct rdv_paths *p, int node, char buf[PATH_MAX])
{
	int n = snprintf(buf, PATH_MAX, "%s/%s.tree.%d", p->dir, p->name, node);

	if (node > 0 && n < PATH_MAX && !access(buf, F_OK))
		return n;
	return snprintf(buf, PATH_MAX, "%s/%s.tree", p->dir, p->name);
}

/* Its length, or -errno. */
static int class_dir(char buf[PATH_MAX])
{
	static const char classes[] = "/sys/class/";
	struct rdv_paths p;
	int n = rdv_paths_open(&p, NULL), node = root_node();

	if (n)
		return n;
	n = node < 0 ? node : tree_of_node(&p, node, buf);
	rdv_paths_close(&p);
	if (n < 0)
		return n;
	if (n + sizeof classes > PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(buf + n, classes);
	return n + (int)sizeof classes - 1;
}

int root_path(char buf[PATH_MAX], const char *fmt, ...)
{
	va_list ap;
	int len, n;

	rdv_look();
	len = class_dir(buf);
	if (len < 0)
		return len;
	va_start(ap, fmt);
	n = vsnprintf(buf + len, PATH_MAX - len, fmt, ap);
	va_end(ap);
	return n < PATH_MAX - len ? 0 : -ENAMETOOLONG;
}

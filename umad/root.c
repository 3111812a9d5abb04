// SPDX-License-Identifier: BSD-3-Clause
#include "umad/root.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "rdv/look.h"
#include "rdv/paths.h"

/* Its length, or -errno. */
static int class_dir(char buf[PATH_MAX])
{
	char tree[RDV_TREE_NAME];
	struct rdv_paths p;
	int n = rdv_paths_open(&p, NULL);

	if (n)
		return n;
	rdv_tree_name(&p, tree);
	n = snprintf(buf, PATH_MAX, "%s/%s/sys/class/", p.dir, tree);
	rdv_paths_close(&p);
	return n < PATH_MAX ? n : -ENAMETOOLONG;
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

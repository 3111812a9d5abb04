// SPDX-License-Identifier: BSD-3-Clause
#include "umad/root.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rdv/admin.h"
#include "rdv/paths.h"

static _Atomic uint64_t looked_ns; /* when weftd was last looked for */

static void look_for_weftd(void)
{
	uint64_t now = clock_coarse_ns();
	uint64_t before = atomic_load_explicit(&looked_ns, memory_order_relaxed);
	const char *autostart = secure_getenv("WEFT_AUTOSTART");

	if (before && now - before < NSEC_PER_SEC)
		return;
	if (!autostart || strcmp(autostart, "0"))
		rdv_start(NULL, false, NULL);
	atomic_store_explicit(&looked_ns, clock_coarse_ns(), memory_order_relaxed);
}

/* Its length, or -errno. */
static int class_dir(char buf[PATH_MAX])
{
	struct rdv_paths p;
	int n = rdv_paths_open(&p, NULL);

	if (n)
		return n;
	n = snprintf(buf, PATH_MAX, "%s/%s.tree/sys/class/", p.dir, p.name);
	rdv_paths_close(&p);
	return n < PATH_MAX ? n : -ENAMETOOLONG;
}

int root_path(char buf[PATH_MAX], const char *fmt, ...)
{
	va_list ap;
	int len, n;

	look_for_weftd();
	len = class_dir(buf);
	if (len < 0)
		return len;
	va_start(ap, fmt);
	n = vsnprintf(buf + len, PATH_MAX - len, fmt, ap);
	va_end(ap);
	return n < PATH_MAX - len ? 0 : -ENAMETOOLONG;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of wrappers share. */
#pragma once

#include <errno.h>

#include "shim/path.h"

#define EXPORT __attribute__((visibility("default")))
#define SLOW   __attribute__((noinline, cold)) /* keeps the big buffers out of the fast path */

/* path_map() for a wrapper: 0, or -1 with errno set. */
static inline int map_or_errno(const char *path, struct path_mapped *m)
{
	int rc = path_map(path, m);

	if (!rc)
		return 0;
	errno = -rc;
	return -1;
}

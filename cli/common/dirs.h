/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <limits.h>

/*
 * What weft lies beside: in a build tree build/weft has build/lib and build/weftd, else they are
 * where Weft was installed.
 */
struct cli_dirs {
	char lib[PATH_MAX];   /* directory of the shared libraries */
	char weftd[PATH_MAX]; /* the daemon's executable, which may be missing */
	char self[PATH_MAX];  /* this program */
};

/* Fills *dirs; sets WEFT_DAEMON for this process unless the user did.  0 or -errno. */
int cli_find_dirs(struct cli_dirs *dirs);

// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/dirs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char shim[] = "libweftpaths.so";

static bool join(char *out, const char *dir, const char *name)
{
	return snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX;
}

/* build/weft, if the libraries lie in build/lib. */
static bool in_build_tree(struct cli_dirs *dirs, const char *exe_dir)
{
	char probe[PATH_MAX];

	return join(dirs->lib, exe_dir, "lib") && join(probe, dirs->lib, shim) &&
	       !access(probe, F_OK) && join(dirs->weftd, exe_dir, "weftd");
}

int cli_find_dirs(struct cli_dirs *dirs)
{
	char dir[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", dirs->self, PATH_MAX - 1);

	if (n < 0)
		return -errno;
	dirs->self[n] = '\0';
	strcpy(dir, dirs->self);
	*strrchr(dir, '/') = '\0';
	if (!in_build_tree(dirs, dir)) {
		strcpy(dirs->lib, WEFT_LIBDIR);
		strcpy(dirs->weftd, WEFT_DAEMON_PATH);
	}
	if (!access(dirs->weftd, X_OK))
		setenv("WEFT_DAEMON", dirs->weftd, 0);
	return 0;
}

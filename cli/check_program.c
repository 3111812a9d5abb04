// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check_program.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/common/dirs.h"
#include "cli/common/program.h"

/* 0 or a negative errno, as execvp(3) has it. */
static int runnable(const char *path)
{
	struct stat st;

	if (stat(path, &st)) /* of "": ENOENT */
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return access(path, X_OK) ? -errno : 0;
}

static void look_at_program(struct check *c, char **cmd, const char *lib)
{
	struct program_verdict v;
	int rc;

	program_look(cmd, lib, &v);
	rc = runnable(v.path);
	if (rc)
		check_set(c, CHECK_FAIL,
			rc == -ENOENT ? "check its name and PATH" : "check its name and mode",
			"cannot run '%.300s': %s", cmd[0], strerror(-rc));
	else if (*v.why)
		check_set(c, CHECK_FAIL, v.remedy, "%s", v.why);
	else if (access(v.path, R_OK))
		check_set(c, CHECK_WARN, "make it readable", "nothing is known of '%.300s': %s",
			v.path, strerror(errno));
	else if (*v.runtime)
		check_set(c, CHECK_OK, NULL,
			"'%.200s' can be served; its sanitizer's runtime is preloaded first "
			"(%.200s)",
			v.path, v.runtime);
	else
		check_set(c, CHECK_OK, NULL,
			"'%.300s' can be served: nothing in its file keeps it from Weft", v.path);
}

void check_program(struct check *c, char **cmd)
{
	struct cli_dirs dirs;
	int rc = cli_find_dirs(&dirs);

	if (rc)
		check_set(c, CHECK_WARN, NULL, "not checked: where weft lies is not known");
	else
		look_at_program(c, cmd, dirs.lib);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "pages/dax.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool dax_is_device(const struct stat *st)
{
	char path[64], target[256];
	ssize_t n;

	if (!S_ISCHR(st->st_mode))
		return false;
	snprintf(path, sizeof path, "/sys/dev/char/%u:%u/subsystem", major(st->st_rdev),
		minor(st->st_rdev));
	n = readlink(path, target, sizeof target - 1);
	if (n < 4)
		return false;
	target[n] = '\0';
	return !strcmp(target + n - 4, "/dax");
}

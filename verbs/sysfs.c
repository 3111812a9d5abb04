// SPDX-License-Identifier: BSD-3-Clause
// Where sysfs is, and reading a file of it.  The path shim makes weft0's files appear there.
#include "verbs/objects.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"

#pragma GCC visibility push(default)
/* Exported since libibverbs 1.0; no public header declares them any more. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
#pragma GCC visibility pop

static char sysfs_path[IBV_SYSFS_PATH_MAX];
static struct lock sysfs_lock;

static void find_sysfs(void)
{
	const char *env = secure_getenv("SYSFS_PATH");
	size_t n;

	if (!env || strlen(env) >= sizeof(sysfs_path))
		env = "/sys";
	strcpy(sysfs_path, env);
	for (n = strlen(sysfs_path); n > 1 && sysfs_path[n - 1] == '/'; n--)
		sysfs_path[n - 1] = '\0';
}

const char *ibv_get_sysfs_path(void)
{
	lock_take(&sysfs_lock);
	if (!sysfs_path[0])
		find_sysfs();
	lock_drop(&sysfs_lock);
	return sysfs_path;
}

/* Reads dir/file without its last newline.  Returns the length, or -1 with errno. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX * 2];
	ssize_t n;
	int fd;

	if (!size)
		return fail_minus_one(EINVAL);
	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return fail_minus_one(ENAMETOOLONG);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	if (n < 0) {
		int err = errno;

		close(fd);
		return fail_minus_one(err);
	}
	close(fd);
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	else if ((size_t)n == size)
		return fail_minus_one(EOVERFLOW);
	buf[n] = '\0';
	return (int)n;
}

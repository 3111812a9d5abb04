// SPDX-License-Identifier: BSD-3-Clause
#include "base/own_fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { HIGH_FD = 512 };

static int high_number(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0 || rl.rlim_cur >= 2 * HIGH_FD)
		return HIGH_FD;
	return rl.rlim_cur / 2;
}

struct own_fd own_fd_at(int fd)
{
	struct own_fd o = {.fd = fd};
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		o.dev = st.st_dev;
		o.ino = st.st_ino;
	}
	return o;
}

struct own_fd own_fd(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, high_number());

	if (high >= 0) {
		close(fd);
		fd = high;
	}
	return own_fd_at(fd);
}

bool own_fd_ok(const struct own_fd *o)
{
	struct stat st;

	return o->fd >= 0 && fstat(o->fd, &st) == 0 && st.st_dev == o->dev && st.st_ino == o->ino;
}

void own_fd_close(struct own_fd *o)
{
	if (own_fd_ok(o))
		close(o->fd);
	o->fd = -1;
}

// SPDX-License-Identifier: BSD-3-Clause
// There are no umad files yet: nothing can be opened, so that no fd is one.
#include "umad/file.h"

#include <errno.h>

#include "base/log.h"

int umad_file_open(const char *device, int port, int flags)
{
	(void)flags;
	log_line(LOG_LVL_WARN,
		"%s port %d: programs cannot send MADs yet, there are no umad files; see "
		"docs/status.md",
		device, port);
	return -EOPNOTSUPP;
}

int umad_file_enable_pkey(int fd)
{
	(void)fd;
	return -EBADF;
}

int umad_file_register(int fd, struct umad_agent *agent)
{
	(void)fd;
	(void)agent;
	return -EBADF;
}

int umad_file_register2(int fd, struct umad_agent *agent)
{
	(void)fd;
	(void)agent;
	return -EBADF;
}

int umad_file_unregister(int fd, uint32_t id)
{
	(void)fd;
	(void)id;
	return -EBADF;
}

ssize_t umad_file_write(int fd, const void *msg, size_t len)
{
	(void)fd;
	(void)msg;
	(void)len;
	return -EBADF;
}

ssize_t umad_file_read(int fd, void *buf, size_t len)
{
	(void)fd;
	(void)buf;
	(void)len;
	return -EBADF;
}

int umad_file_wait(int fd, int timeout_ms)
{
	(void)fd;
	(void)timeout_ms;
	return -EBADF;
}

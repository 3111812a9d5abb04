// SPDX-License-Identifier: BSD-3-Clause
/* How file descriptors come to a process that has them already, or from another: marks go along. */
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/mark.h"
#include "shim/next.h"
#include "shim/shim.h"

EXPORT int dup(int from)
{
	int to = ((int (*)(int))next(NEXT_DUP))(from);

	if (to >= 0)
		mark_copy(from, to);
	return to;
}

EXPORT int dup2(int from, int to)
{
	int ret = ((int (*)(int, int))next(NEXT_DUP2))(from, to);

	if (ret >= 0 && from != to)
		mark_copy(from, to);
	return ret;
}

EXPORT int dup3(int from, int to, int flags)
{
	int ret = ((int (*)(int, int, int))next(NEXT_DUP3))(from, to, flags);

	if (ret >= 0)
		mark_copy(from, to);
	return ret;
}

static inline int fcntl_by(enum next_fn fn, int fd, int cmd, void *arg)
{
	int ret = ((int (*)(int, int, ...))next(fn))(fd, cmd, arg);

	if (ret >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC))
		mark_copy(fd, ret);
	return ret;
}

EXPORT int fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return fcntl_by(NEXT_FCNTL, fd, cmd, arg);
}

EXPORT int fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return fcntl_by(NEXT_FCNTL64, fd, cmd, arg);
}

/* Looks at the fds that came with a message, if any did. */
static void received(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			mark_arrived(fd);
		}
	}
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t ret = ((ssize_t(*)(int, struct msghdr *, int))next(NEXT_RECVMSG))(fd, msg, flags);

	if (ret >= 0 && msg->msg_controllen)
		received(msg);
	return ret;
}

EXPORT int recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags, struct timespec *timeout)
{
	int (*real)(int, struct mmsghdr *, unsigned, int, struct timespec *) = next(NEXT_RECVMMSG);
	int ret = real(fd, msgs, n, flags, timeout);

	for (int i = 0; i < ret; i++)
		if (msgs[i].msg_hdr.msg_controllen)
			received(&msgs[i].msg_hdr);
	return ret;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "face/standin.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "face/poll_many.h"

/* A socket with its smallest buffer (4.5 KiB) is writable while a quarter of that is in use. */
enum { FILLER = 2048 };

int standin_open(struct standin *s, int *fd)
{
	int pair[2], err = errno, small = 1;
	struct stat st;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	if (fstat(pair[0], &st) < 0 ||
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) < 0) {
		int ret = -errno;

		close(pair[0]);
		close(pair[1]);
		return ret;
	}
	errno = err;
	s->ino = st.st_ino;
	s->sock = pair[1];
	*fd = pair[0];
	standin_fill(s, *fd);
	return 0;
}

void standin_close(struct standin *s)
{
	if (s->sock >= 0)
		close(s->sock);
	s->sock = -1;
}

void standin_undo(struct standin *s)
{
	standin_close(s);
	s->marked = s->filled = s->hung_up = false;
}

void standin_mark(struct standin *s)
{
	if (s->marked || s->sock < 0)
		return;
	s->marked = send(s->sock, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* Is fd still the endpoint's, and not what the program put in its place? */
static bool is_ours(const struct standin *s, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == s->ino;
}

void standin_unmark(struct standin *s, int fd)
{
	char byte;

	if (!s->marked || s->hung_up || !is_ours(s, fd))
		return;
	s->marked = recv(fd, &byte, 1, MSG_DONTWAIT) != 1;
}

void standin_fill(struct standin *s, int fd)
{
	static const char filler[FILLER];

	if (s->filled || s->hung_up || !is_ours(s, fd))
		return;
	s->filled = send(fd, filler, sizeof(filler), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

void standin_unfill(struct standin *s)
{
	char filler[FILLER];

	if (!s->filled || s->sock < 0)
		return;
	while (recv(s->sock, filler, sizeof(filler), MSG_DONTWAIT) > 0)
		;
	s->filled = false;
}

void standin_hang_up(struct standin *s)
{
	standin_mark(s); /* stays unread from now on: standin_closed() */
	standin_unfill(s);
	s->hung_up = true;
	shutdown(s->sock, SHUT_RDWR);
}

bool standin_closed(const struct standin *s)
{
	struct pollfd p = {.fd = s->sock};
	int unread = 1;

	if (s->sock < 0)
		return false;
	if (s->hung_up) /* the kernel throws away what a closed socket had not read */
		return syscall(SYS_ioctl, s->sock, SIOCOUTQ, &unread) == 0 && unread == 0;
	return poll_ns(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

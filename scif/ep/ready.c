// SPDX-License-Identifier: BSD-3-Clause
#include "scif/ep/ready.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scif/ep/ep.h"
#include "scif/ep/sys.h"

/* A socket with its smallest buffer (4.5 KiB) is writable while a quarter of that is in use. */
enum { FILLER = 2048 };

int ready_open(struct scif_ep *ep, int *fd)
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
	ep->ino = st.st_ino;
	ep->sock = pair[1];
	*fd = pair[0];
	ep_fill(ep, *fd);
	return 0;
}

void ready_undo(struct scif_ep *ep)
{
	close(ep->sock);
	ep->sock = -1;
	ep->marked = ep->filled = ep->hung_up = false;
}

void ep_mark(struct scif_ep *ep)
{
	if (ep->marked || ep->sock < 0)
		return;
	ep->marked = send(ep->sock, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* Is fd still the endpoint's, and not what the program put in its place? */
static bool is_ours(const struct scif_ep *ep, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == ep->ino;
}

void ep_unmark(struct scif_ep *ep, int fd)
{
	char byte;

	if (!ep->marked || ep->hung_up || !is_ours(ep, fd))
		return;
	ep->marked = recv(fd, &byte, 1, MSG_DONTWAIT) != 1;
}

void ep_fill(struct scif_ep *ep, int fd)
{
	static const char filler[FILLER];

	if (ep->filled || ep->hung_up || !is_ours(ep, fd))
		return;
	ep->filled = send(fd, filler, sizeof(filler), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

void ep_unfill(struct scif_ep *ep)
{
	char filler[FILLER];

	if (!ep->filled || ep->sock < 0)
		return;
	while (recv(ep->sock, filler, sizeof(filler), MSG_DONTWAIT) > 0)
		;
	ep->filled = false;
}

void ep_hang_up(struct scif_ep *ep)
{
	ep_mark(ep); /* stays unread from now on: ready_closed() */
	ep_unfill(ep);
	ep->hung_up = true;
	shutdown(ep->sock, SHUT_RDWR);
}

bool ready_closed(struct scif_ep *ep)
{
	struct pollfd p = {.fd = ep->sock};
	int unread = 1;

	if (ep->sock < 0)
		return false;
	if (ep->hung_up) /* the kernel throws away what a closed socket had not read */
		return sys_ioctl(ep->sock, SIOCOUTQ, &unread) == 0 && unread == 0;
	return sys_poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

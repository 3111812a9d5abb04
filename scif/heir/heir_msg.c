// SPDX-License-Identifier: BSD-3-Clause
#include "scif/heir/heir_msg.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(HEIR_FDS * sizeof(int))];
};

static void add_fds(struct msghdr *h, union control *c, const int *fd)
{
	struct cmsghdr *cm;
	size_t n = 0;

	while (n < HEIR_FDS && fd[n] >= 0)
		n++;
	if (!n)
		return;
	h->msg_control = c;
	h->msg_controllen = CMSG_SPACE(n * sizeof(int));
	cm = CMSG_FIRSTHDR(h);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(cm), fd, n * sizeof(int));
}

static int put(int sock, const struct heir_msg *m, int flags)
{
	struct iovec v[2] = {{m->head, m->head_len}, {m->data, m->len}};
	struct msghdr h = {.msg_iov = v, .msg_iovlen = m->len ? 2 : 1};
	union control c = {0};
	ssize_t n;

	add_fds(&h, &c, m->fd);
	do
		n = sendmsg(sock, &h, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)(m->head_len + m->len) ? 0 : -ECONNRESET;
}

int heir_put(int sock, const struct heir_msg *m)
{
	return put(sock, m, 0);
}

int heir_answer(int sock, const struct heir_msg *m)
{
	return put(sock, m, MSG_DONTWAIT);
}

static void take_fds(struct msghdr *h, int *fd)
{
	struct cmsghdr *cm = CMSG_FIRSTHDR(h);

	for (int i = 0; i < HEIR_FDS; i++)
		fd[i] = -1;
	if (cm && cm->cmsg_level == SOL_SOCKET && cm->cmsg_type == SCM_RIGHTS &&
		cm->cmsg_len <= CMSG_LEN(HEIR_FDS * sizeof(int)))
		memcpy(fd, CMSG_DATA(cm), cm->cmsg_len - CMSG_LEN(0));
}

int heir_get(int sock, struct heir_msg *m)
{
	struct iovec v[2] = {{m->head, m->head_len}, {m->data, m->len}};
	union control c;
	/* less than sizeof(c): a fourth fd would come in the padding, and stay open */
	struct msghdr h = {.msg_iov = v,
		.msg_iovlen = 2,
		.msg_control = &c,
		.msg_controllen = CMSG_LEN(HEIR_FDS * sizeof(int))};
	ssize_t n;

	do
		n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	take_fds(&h, m->fd);
	if (n < (ssize_t)m->head_len || (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		heir_drop(m);
		return -EBADMSG;
	}
	m->len = n - m->head_len;
	return 0;
}

void heir_drop(struct heir_msg *m)
{
	for (int i = 0; i < HEIR_FDS; i++) {
		if (m->fd[i] >= 0)
			close(m->fd[i]);
		m->fd[i] = -1;
	}
}

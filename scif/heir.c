// SPDX-License-Identifier: BSD-3-Clause
#include "scif/heir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "scif/ep.h"
#include "scif/stream.h"

enum { MOST = 4095, OFFERED = 2, MAX_CHILDREN = 1024 };

struct question {
	uint32_t receive; /* 1: receive, 0: send what follows */
	int32_t len;
};

static struct {
	struct lock lock;
	int offer[OFFERED];        /* during a fork: the parent's end, the child's */
	int parent;                /* the socket to our parent */
	struct lock children_lock; /* held over a fork */
	int child[MAX_CHILDREN];   /* sockets to our children */
	unsigned children;
} heir = {.offer = {-1, -1}, .parent = -1};

/* ---- fork ---- */

void heir_before_fork(bool wanted)
{
	int err = errno;

	lock_take(&heir.children_lock);
	if (!wanted || heir.children == MAX_CHILDREN ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, heir.offer) < 0)
		heir.offer[0] = heir.offer[1] = -1; /* the child cannot use what it inherits */
	errno = err;
}

int heir_parent_forked(void)
{
	int fd = heir.offer[0];

	if (fd >= 0) {
		close(heir.offer[1]);
		fcntl(fd, F_SETFL, O_NONBLOCK);
		heir.child[heir.children++] = fd;
	}
	heir.offer[0] = heir.offer[1] = -1;
	lock_drop(&heir.children_lock);
	return fd;
}

void heir_end(int sock)
{
	lock_take(&heir.children_lock);
	for (unsigned i = 0; i < heir.children; i++) {
		if (heir.child[i] == sock) {
			heir.child[i] = heir.child[--heir.children];
			break;
		}
	}
	lock_drop(&heir.children_lock);
	close(sock); /* without the lock, which is held over a fork: the shim may look for it */
}

void heir_child_forked(void)
{
	for (unsigned i = 0; i < heir.children; i++)
		close(heir.child[i]); /* of our siblings, who would not see our parent's end */
	heir.children = 0;
	atomic_store_explicit(&heir.children_lock.word, 0, memory_order_relaxed);
	if (heir.parent >= 0)
		close(heir.parent); /* of our parent to its own: not ours to ask */
	if (heir.offer[0] >= 0)
		close(heir.offer[0]);
	heir.parent = heir.offer[1];
	heir.offer[0] = heir.offer[1] = -1;
	atomic_store_explicit(&heir.lock.word, 0, memory_order_relaxed);
}

void heir_adopt(struct scif_ep *ep)
{
	ep->orphan = ep->state == EP_INHERITED || heir.parent < 0;
}

/* ---- a question and its answer: a number, and bytes ---- */

/* Sends both parts as one message, with fd if it is not -1. */
static int put(int sock, const void *head, size_t head_len, const void *data, size_t len, int fd)
{
	struct iovec v[2] = {{(void *)head, head_len}, {(void *)data, len}};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = len ? 2 : 1};
	struct cmsghdr *c;
	ssize_t n;

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	do
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)(head_len + len) ? 0 : -ECONNRESET;
}

/* Receives such a message: how many bytes of data; -EBADMSG; -ECONNRESET nobody is there. */
static int get(int sock, void *head, size_t head_len, void *data, size_t len, int *fd)
{
	struct iovec v[2] = {{head, head_len}, {data, len}};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = v,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	*fd = -1;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	return n >= (ssize_t)head_len && !(m.msg_flags & MSG_TRUNC) ? (int)(n - head_len)
								    : -EBADMSG;
}

/* ---- the child ---- */

static int ask(int fd, const struct question *q, const uint8_t *out, uint8_t *in)
{
	int32_t ret = -ECONNRESET;
	int n, none = -1, err = errno;

	lock_take(&heir.lock);
	n = put(heir.parent, q, sizeof(*q), out, q->receive ? 0 : q->len, fd);
	if (!n)
		n = get(heir.parent, &ret, sizeof(ret), in, q->receive ? q->len : 0, &none);
	lock_drop(&heir.lock);
	errno = err;
	if (n < 0)
		return -ECONNRESET;
	return q->receive && ret > 0 && ret != n ? -ECONNRESET : ret;
}

/* Moves len bytes in pieces; where it blocks, readiness of the fd says when to go on. */
static int move(struct scif_ep *ep, int fd, const uint8_t *out, uint8_t *in, int len, bool block)
{
	struct pollfd p = {.fd = fd, .events = in ? POLLIN : POLLOUT};
	int done = 0;

	if (ep->orphan)
		return -EOPNOTSUPP;
	while (done < len) {
		struct question q = {.receive = in != NULL};
		int ret;

		q.len = len - done < MOST ? len - done : MOST;
		ret = ask(fd, &q, out ? out + done : NULL, in ? in + done : NULL);
		if (ret < 0)
			return done ? done : ret;
		done += ret;
		if (done == len || (!block && ret < q.len))
			break;
		if (!ret && poll(&p, 1, -1) < 0)
			return done ? done : -errno;
	}
	return done;
}

int heir_send(struct scif_ep *ep, int fd, const uint8_t *msg, int len, bool block)
{
	return move(ep, fd, msg, NULL, len, block);
}

int heir_recv(struct scif_ep *ep, int fd, uint8_t *msg, int len, bool block)
{
	return move(ep, fd, NULL, msg, len, block);
}

/* ---- the parent ---- */

static int carry_out(int fd, const struct question *q, uint8_t *data, int n)
{
	struct scif_ep *ep;
	int ret;

	if (q->receive > 1 || q->len < 1 || q->len > MOST || n != (q->receive ? 0 : q->len))
		return -EINVAL;
	ret = ep_find(fd, &ep);
	if (ret)
		return ret;
	ret = q->receive ? stream_recv(ep, fd, data, q->len, false)
			 : stream_send(ep, fd, data, q->len, false);
	ep_put(ep);
	return ret;
}

bool heir_asked(int sock)
{
	struct question q;
	uint8_t data[MOST];
	int32_t ret;
	int fd = -1, n = get(sock, &q, sizeof(q), data, sizeof(data), &fd);

	if (n == -ECONNRESET || n == -EAGAIN)
		return n == -EAGAIN;
	ret = n < 0 || fd < 0 ? -EINVAL : carry_out(fd, &q, data, n);
	if (fd >= 0)
		close(fd);
	return !put(sock, &ret, sizeof(ret), data, n >= 0 && q.receive && ret > 0 ? ret : 0, -1);
}

// SPDX-License-Identifier: BSD-3-Clause
/* Reading and writing, as programs call it. */
#include "rsock/rsock.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "rsock/dgram.h"
#include "rsock/stream.h"
#include "rsock/table.h"
#include "rsock/wait.h"

enum {
	KNOWN_FLAGS = MSG_DONTWAIT | MSG_PEEK | MSG_WAITALL | MSG_NOSIGNAL | MSG_TRUNC | MSG_MORE |
		      MSG_CMSG_CLOEXEC
};

/* What a call wants to move. */
struct io {
	const struct iovec *iov;
	int n;
	int flags;
	size_t total;
};

static int describe(struct io *io, const struct iovec *iov, int n, int flags)
{
	*io = (struct io){.iov = iov, .n = n, .flags = flags};
	if (flags & ~KNOWN_FLAGS)
		return -EOPNOTSUPP;
	if (n < 0 || n > IOV_MAX)
		return -EINVAL;
	for (int i = 0; i < n; i++)
		if (iov[i].iov_len > SSIZE_MAX - io->total)
			return -EINVAL;
		else
			io->total += iov[i].iov_len;
	return 0;
}

static uint64_t deadline_of(uint64_t timeout)
{
	return timeout ? clock_ns() + timeout : 0;
}

static bool may_wait(const struct rsocket *s, int flags)
{
	return !s->nonblock && !(flags & MSG_DONTWAIT);
}

/* The part of piece i that lies beyond the first `skip` bytes of all; false: it lies before. */
static bool piece(const struct io *io, int i, size_t *skip, uint8_t **p, size_t *len)
{
	size_t have = io->iov[i].iov_len;

	if (*skip >= have) {
		*skip -= have;
		return false;
	}
	*p = (uint8_t *)io->iov[i].iov_base + *skip;
	*len = have - *skip;
	*skip = 0;
	return true;
}

/* ---- streams ---- */

/* One piece, of which `moved` bytes came before; as stream_take() and stream_put(). */
typedef ssize_t move_fn(
	struct rsocket *s, const struct io *io, uint8_t *p, size_t len, size_t moved);

static ssize_t take_piece(
	struct rsocket *s, const struct io *io, uint8_t *p, size_t len, size_t moved)
{
	bool peek = io->flags & MSG_PEEK;

	return stream_take(s, p, len, peek, peek ? moved : 0);
}

static ssize_t put_piece(
	struct rsocket *s, const struct io *io, uint8_t *p, size_t len, size_t moved)
{
	(void)io, (void)moved;
	return stream_put(s, p, len);
}

/* What can be moved now, from or to the place after the first `done` bytes. */
static ssize_t move_now(struct rsocket *s, const struct io *io, size_t done, move_fn *move)
{
	size_t skip = done, moved = 0;
	ssize_t n = 0;

	for (int i = 0; i < io->n; i++) {
		uint8_t *p;
		size_t len;

		if (!piece(io, i, &skip, &p, &len))
			continue;
		n = move(s, io, p, len, moved);
		if (n > 0)
			moved += n;
		if (n < (ssize_t)len)
			break;
	}
	return moved ? (ssize_t)moved : n;
}

static ssize_t stream_recv(struct rsocket *s, const struct io *io)
{
	uint64_t deadline = deadline_of(s->opt.rcvtimeo);
	bool all = io->flags & MSG_WAITALL && !(io->flags & MSG_PEEK);
	size_t done = 0;
	ssize_t n;

	if (!io->total)
		return 0;
	for (;;) {
		rs_progress(s, false);
		n = move_now(s, io, done, take_piece);
		if (n > 0)
			done += n;
		if (n == 0 || (done && (!all || done == io->total)))
			return done;
		if (n < 0 && n != -EAGAIN)
			break;
		if (!may_wait(s, io->flags))
			break;
		if (n > 0)
			continue;
		n = rs_wait(s, POLLIN, deadline);
		if (n)
			break;
	}
	return done ? (ssize_t)done : n;
}

static ssize_t stream_send(struct rsocket *s, const struct io *io)
{
	uint64_t deadline = deadline_of(s->opt.sndtimeo);
	size_t done = 0;
	ssize_t n;

	/* What came meanwhile may be credit; and an end is to be seen. */
	rs_progress(s, false);
	for (;;) {
		n = move_now(s, io, done, put_piece);
		if (n > 0)
			done += n;
		s->spoke |= n > 0;
		if (done == io->total)
			return done;
		if (n < 0 && n != -EAGAIN)
			break;
		rs_progress(s, false);
		if (stream_writable(s))
			continue;
		n = -EAGAIN;
		if (!may_wait(s, io->flags))
			break;
		n = rs_wait(s, POLLOUT, deadline);
		if (n)
			break;
	}
	return done ? (ssize_t)done : n;
}

/* ---- datagrams ---- */

static ssize_t dgram_recv(struct rsocket *s, const struct io *io, struct sockaddr_storage *from)
{
	uint64_t deadline = deadline_of(s->opt.rcvtimeo);
	ssize_t n;

	for (;;) {
		rs_progress(s, false);
		if (s->err) {
			n = -s->err;
			s->err = 0;
			break;
		}
		n = dgram_take(s, io->iov, io->n, io->flags & MSG_PEEK, from);
		if (n != -EAGAIN || !may_wait(s, io->flags))
			break;
		n = rs_wait(s, POLLIN, deadline);
		if (n)
			break;
	}
	return n;
}

static ssize_t dgram_send(
	struct rsocket *s, const struct io *io, const struct sockaddr *to, socklen_t len)
{
	uint64_t deadline = deadline_of(s->opt.sndtimeo);
	ssize_t n;

	for (;;) {
		rs_progress(s, false);
		if (s->err) {
			n = -s->err;
			s->err = 0;
			break;
		}
		n = dgram_put(s, io->iov, io->n, to, len);
		s->spoke |= n >= 0;
		if (n != -EAGAIN || !may_wait(s, io->flags))
			break;
		n = rs_wait(s, POLLOUT, deadline);
		if (n)
			break;
	}
	return n;
}

/* ---- both ---- */

static void give_address(
	const struct sockaddr_storage *ss, struct sockaddr *addr, socklen_t *addrlen)
{
	socklen_t len = ss->ss_family == AF_INET6  ? sizeof(struct sockaddr_in6)
			: ss->ss_family == AF_INET ? sizeof(struct sockaddr_in)
						   : 0;

	if (!addrlen)
		return;
	if (addr)
		memcpy(addr, ss, *addrlen < len ? *addrlen : len);
	*addrlen = len;
}

static ssize_t receive(int socket, const struct iovec *iov, int n, int flags, struct sockaddr *from,
	socklen_t *fromlen, int *msg_flags)
{
	struct sockaddr_storage ss = {0};
	struct rsocket *s = rs_enter(socket);
	struct io io;
	ssize_t ret;

	if (!s)
		return -1;
	ret = describe(&io, iov, n, flags);
	if (!ret && is_dgram(s)) {
		ret = dgram_recv(s, &io, &ss);
		if (ret > (ssize_t)io.total) {
			if (msg_flags)
				*msg_flags |= MSG_TRUNC;
			if (!(flags & MSG_TRUNC))
				ret = io.total;
		}
	} else if (!ret) {
		ret = stream_recv(s, &io);
	}
	if (ret >= 0)
		give_address(&ss, from, fromlen);
	return rs_leave(s, ret);
}

static ssize_t transmit(int socket, const struct iovec *iov, int n, int flags,
	const struct sockaddr *to, socklen_t tolen)
{
	struct rsocket *s = rs_enter(socket);
	struct io io;
	ssize_t ret;

	if (!s)
		return -1;
	ret = describe(&io, iov, n, flags);
	if (!ret && is_dgram(s))
		ret = dgram_send(s, &io, to, tolen);
	else if (!ret)
		ret = stream_send(s, &io);
	return rs_leave(s, ret);
}

/* ---- public ---- */

ssize_t rrecvfrom(
	int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};

	return receive(socket, &iov, 1, flags, src_addr, addrlen, NULL);
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecvfrom(socket, buf, count, 0, NULL, NULL);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return receive(socket, iov, iovcnt, 0, NULL, NULL, NULL);
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	msg->msg_flags = 0;
	msg->msg_controllen = 0;
	return receive(socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
		&msg->msg_namelen, &msg->msg_flags);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
	const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return transmit(socket, &iov, 1, flags, dest_addr, addrlen);
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return rsendto(socket, buf, len, flags, NULL, 0);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsendto(socket, buf, count, 0, NULL, 0);
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return transmit(socket, iov, iovcnt, 0, NULL, 0);
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return transmit(
		socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name, msg->msg_namelen);
}

// SPDX-License-Identifier: BSD-3-Clause
/* The calls that make, connect, name and end rsockets. */
#include "rsock/rsock.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "rsock/connect.h"
#include "rsock/dgram.h"
#include "rsock/table.h"
#include "rsock/wait.h"

/* rshutdown() waits no longer for room to say it. */
#define SHUTDOWN_WAIT_NS NSEC_PER_SEC

static int check_kind(int domain, int kind, int protocol)
{
	/* First of all, and without a lock: librspreload leads every socket() of ours here. */
	if (domain != AF_INET && domain != AF_INET6)
		return -EAFNOSUPPORT;
	if (kind != SOCK_STREAM && kind != SOCK_DGRAM)
		return -ESOCKTNOSUPPORT;
	if (protocol && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return -EPROTONOSUPPORT;
	return 0;
}

int rsocket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	int ret = check_kind(domain, kind, protocol);
	struct rsocket *s;

	if (!ret)
		ret = rs_create(domain, kind, &s);
	if (ret) {
		errno = -ret;
		return -1;
	}
	s->nonblock = type & SOCK_NONBLOCK;
	return s->fd;
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *s = rs_enter(socket);

	if (!s)
		return -1;
	return rs_leave(
		s, is_dgram(s) ? dgram_bind(s, addr, addrlen) : conn_bind(s, addr, addrlen));
}

int rlisten(int socket, int backlog)
{
	struct rsocket *s = rs_enter(socket);

	if (!s)
		return -1;
	return rs_leave(s, is_dgram(s) ? -EOPNOTSUPP : conn_listen(s, backlog));
}

static bool is_settled(struct rsocket *s)
{
	return s->state == RS_CONNECTED || s->state == RS_ENDED;
}

static int wait_connected(struct rsocket *s)
{
	uint64_t deadline = s->opt.sndtimeo ? clock_ns() + s->opt.sndtimeo : 0;
	int ret = rs_wait_for(s, is_settled, POLLOUT, deadline);

	if (ret)
		return ret == -EAGAIN ? -EINPROGRESS : ret;
	if (s->state == RS_CONNECTED)
		return 0;
	ret = s->err ? -s->err : -ECONNABORTED;
	s->err = 0;
	return ret;
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *s = rs_enter(socket);
	int ret;

	if (!s)
		return -1;
	if (is_dgram(s))
		return rs_leave(s, dgram_connect(s, addr, addrlen));
	rs_progress(s, false);
	ret = conn_start(s, addr, addrlen);
	if (ret == -EINPROGRESS && !s->nonblock)
		ret = wait_connected(s);
	if (ret == -EINPROGRESS || ret == -EINTR)
		s->told_async = true;
	return rs_leave(s, ret);
}

/* ---- names ---- */

static int give(const struct sockaddr *from, int family, struct sockaddr *addr, socklen_t *addrlen)
{
	socklen_t len =
		family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	struct sockaddr_storage ss = {0};

	if (!addrlen)
		return -EFAULT;
	if (from)
		memcpy(&ss, from, len);
	ss.ss_family = family;
	if (addr)
		memcpy(addr, &ss, *addrlen < len ? *addrlen : len);
	*addrlen = len;
	return 0;
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *s = rs_enter(socket);
	struct sockaddr *from;

	if (!s)
		return -1;
	from = s->id ? rdma_get_local_addr(s->id) : NULL;
	if (from && from->sa_family != AF_INET && from->sa_family != AF_INET6)
		from = NULL;
	return rs_leave(s, give(from, from ? from->sa_family : s->family, addr, addrlen));
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *s = rs_enter(socket);
	struct sockaddr_storage peer;
	struct sockaddr *from;
	int ret;

	if (!s)
		return -1;
	if (is_dgram(s)) {
		ret = dgram_peer(s, &peer);
		if (!ret)
			ret = give((struct sockaddr *)&peer, peer.ss_family, addr, addrlen);
		return rs_leave(s, ret);
	}
	if (s->state != RS_CONNECTED && s->state != RS_ACCEPTING &&
		!(s->state == RS_ENDED && s->st.out.room.msgs))
		return rs_leave(s, -ENOTCONN);
	from = rdma_get_peer_addr(s->id);
	return rs_leave(s, give(from, from->sa_family, addr, addrlen));
}

/* ---- accepting ---- */

static int wait_accepted(struct rsocket *s, struct rsocket **out)
{
	int ret;

	for (;;) {
		conn_events(s);
		ret = s->closed ? -EBADF : conn_accept(s, out);
		if (ret != -EAGAIN)
			return ret;
		conn_events(s);
		if (s->request)
			continue;
		if (s->nonblock)
			return -EAGAIN;
		ret = rs_wait(s, POLLIN, 0);
		if (ret)
			return ret;
	}
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *s = rs_enter(socket), *n;
	int ret;

	if (!s)
		return -1;
	ret = is_dgram(s) ? -EOPNOTSUPP : s->state == RS_LISTENING ? 0 : -EINVAL;
	if (!ret)
		ret = wait_accepted(s, &n);
	if (ret)
		return rs_leave(s, ret);
	if (addr && addrlen)
		give(rdma_get_peer_addr(n->id), n->family, addr, addrlen);
	return rs_leave(s, n->fd);
}

/* ---- the end ---- */

static int shut(struct rsocket *s, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (is_dgram(s) || s->state < RS_RESOLVING)
		return -ENOTCONN;
	if (how != SHUT_WR)
		s->st.rx_shut = true;
	if (how != SHUT_RD)
		(void)conn_fin(s, clock_ns() + SHUTDOWN_WAIT_NS);
	sleepers_wake(s->sleepers);
	return 0;
}

int rshutdown(int socket, int how)
{
	struct rsocket *s = rs_enter(socket);

	return s ? (int)rs_leave(s, shut(s, how)) : -1;
}

int rclose(int socket)
{
	struct rsocket *s = rs_enter(socket);

	if (!s)
		return -1;
	if (!rs_withdraw(s))
		return rs_leave(s, -EBADF);
	if (!is_dgram(s) && !s->inherited)
		conn_close(s);
	s->closed = true;
	sleepers_wake(s->sleepers);
	lock_drop(&s->lock);
	rs_release(s); /* the table's */
	rs_release(s); /* ours */
	return 0;
}

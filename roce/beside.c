// SPDX-License-Identifier: BSD-3-Clause
#include "roce/beside.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/own_fd.h"
#include "hca/seg/seg.h"
#include "rdv/claim.h"
#include "rdv/rdv.h"
#include "rdv/wire.h"

enum {
	PEERS = 256,
	CLAIMS_MAX = SEG_QPS / CLAIM_QPNS,
	CAME_MAX = 1024,
	READY = 8,
	READS = 16, /* of one connection, at a time */
	ACCEPTS = 64,
	MESSAGE_BYTES = sizeof(struct wire_handed) + (64 << 10),
	ROOM = 4 << 20, /* of a connection, if the system lets it */
	AGAIN_NS = NSEC_PER_MSEC,
};

/* ---- to others ---- */

/* Whom we send to: who has a claim. */
struct peer_claim {
	uint32_t claim; /* 0: the entry is free */
	uint32_t refs;
	struct own_fd fd;
	uint64_t again_ns; /* not before then */
	bool told_full;
};

static struct {
	struct lock lock;
	_Atomic uint32_t held;
	struct peer_claim peer[PEERS];
} out;

/* A connection to it, if it is a process of this user. */
static int meet(struct peer_claim *p)
{
	const int room = ROOM;
	struct ucred cred;
	int fd = claim_meet(p->claim, &cred);

	if (fd < 0)
		return fd;
	if (cred.uid != geteuid()) {
		close(fd);
		return -EACCES;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	p->fd = own_fd(fd);
	return 0;
}

/* With the lock held: its entry, or the one that it could have, or NULL. */
static struct peer_claim *entry_of(uint32_t claim)
{
	struct peer_claim *could = NULL;

	for (uint32_t i = 0; i < PEERS; i++) {
		struct peer_claim *p = &out.peer[(claim + i) % PEERS];

		if (p->claim == claim)
			return p;
		if (!p->refs && (!could || could->claim))
			could = p;
		if (!p->claim)
			break;
	}
	return could;
}

/* With the lock held: one that is connected.  NULL and *rc: it is none. */
static struct peer_claim *connected(uint32_t claim, int *rc)
{
	struct peer_claim *p = entry_of(claim);

	*rc = p ? 0 : -ENOSPC;
	if (!p)
		return NULL;
	if (p->claim != claim) {
		own_fd_close(&p->fd);
		*p = (struct peer_claim){.claim = claim, .fd = OWN_FD_NONE};
	}
	if (own_fd_ok(&p->fd))
		return p;
	*rc = meet(p);
	return *rc ? NULL : p;
}

static void tell_full(struct peer_claim *p)
{
	if (p->told_full)
		return;
	p->told_full = true;
	log_line(LOG_LVL_WARN,
		"who has the queue pair numbers %u to %u, another fabric of this user, is not "
		"connected yet: as many others as there is room for wait to be connected there; "
		"tried again with each packet (who they are: ss -xp, @weft-qpn/%u)",
		p->claim * CLAIM_QPNS, (p->claim + 1) * CLAIM_QPNS - 1, p->claim);
}

/*
 * With the lock held: the entry of who is of this user, but has no room for a connection now, as
 * strangers may take it up until he looks; or NULL.
 */
static struct peer_claim *full(uint32_t claim, int *rc)
{
	struct peer_claim *p = *rc == -EAGAIN ? entry_of(claim) : NULL;
	uid_t uid;

	if (!p)
		return NULL;
	*rc = claim_owner(claim, &uid) && uid != geteuid() ? -EACCES : 0;
	if (*rc)
		return NULL;
	tell_full(p);
	return p;
}

int beside_hold(uint32_t qpn)
{
	struct peer_claim *p;
	int rc;

	lock_take(&out.lock);
	p = connected(qpn / CLAIM_QPNS, &rc);
	if (!p)
		p = full(qpn / CLAIM_QPNS, &rc);
	if (p) {
		p->refs++;
		atomic_fetch_add_explicit(&out.held, 1, memory_order_relaxed);
	}
	lock_drop(&out.lock);
	return rc;
}

void beside_drop(uint32_t qpn)
{
	struct peer_claim *p;

	lock_take(&out.lock);
	p = entry_of(qpn / CLAIM_QPNS);
	if (p && p->claim == qpn / CLAIM_QPNS && p->refs) {
		p->refs--;
		atomic_fetch_sub_explicit(&out.held, 1, memory_order_relaxed);
	}
	lock_drop(&out.lock);
}

bool beside_any(void)
{
	return atomic_load_explicit(&out.held, memory_order_relaxed);
}

/* No cancellation point.  -errno. */
static int send_to(const struct peer_claim *p, const struct msghdr *m)
{
	return syscall(SYS_sendmsg, p->fd.fd, m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static bool is_full(int rc)
{
	return rc == -EAGAIN || rc == -ENOBUFS || rc == -ENOMEM;
}

/* Once more, on a new connection, where the old one has ended. */
static int send_or_meet(uint32_t claim, const struct msghdr *m)
{
	struct peer_claim *p;
	uint64_t now;
	int rc;

	p = connected(claim, &rc);
	if (p)
		rc = send_to(p, m);
	if (!p || !rc || is_full(rc) || rc == -EMSGSIZE)
		return rc;
	own_fd_close(&p->fd);
	now = clock_ns();
	if (now < p->again_ns)
		return rc;
	p->again_ns = now + AGAIN_NS;
	p = connected(claim, &rc);
	return p ? send_to(p, m) : rc;
}

bool beside_send(uint32_t claim, const struct msghdr *m)
{
	int saved = errno, rc;

	lock_take(&out.lock);
	rc = send_or_meet(claim, m);
	lock_drop(&out.lock);
	errno = saved;
	return !rc;
}

/* ---- from others ---- */

static struct {
	struct lock lock; /* claims, and ep but for its number */
	struct own_fd ep;
	_Atomic int epfd; /* its number, + 1; 0: none */
	uint32_t claim[CLAIMS_MAX];
	uint32_t n_claims;
	/* under the engine's lock */
	struct own_fd came[CAME_MAX];
	uint32_t n_came;
	uint8_t message[MESSAGE_BYTES];
} in = {.ep = OWN_FD_NONE};

/* What epoll says of an event: a claim's socket, or a connection. */
enum { IS_CLAIM = 1, FD_SHIFT = 1 };

static int watch(int ep, int fd, unsigned what)
{
	struct epoll_event e = {
		.events = EPOLLIN, .data.u64 = (uint64_t)(unsigned)fd << FD_SHIFT | what};

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) && errno != EEXIST ? -errno : 0;
}

static int open_poll(void)
{
	if (own_fd_ok(&in.ep))
		return 0;
	in.ep = own_fd(epoll_create1(EPOLL_CLOEXEC));
	if (in.ep.fd < 0)
		return -errno;
	atomic_store(&in.epfd, in.ep.fd + 1);
	return 0;
}

static bool listens(uint32_t claim)
{
	for (uint32_t i = 0; i < in.n_claims; i++)
		if (in.claim[i] == claim)
			return true;
	return false;
}

static int listen_at(uint32_t claim)
{
	int fd = rdv_own_claim(claim * CLAIM_QPNS);

	return fd < 0 ? fd : watch(in.ep.fd, fd, IS_CLAIM);
}

int beside_listen(uint32_t qpn)
{
	uint32_t claim = qpn / CLAIM_QPNS;
	int rc = 0;

	lock_take(&in.lock);
	if (!listens(claim)) {
		rc = open_poll();
		if (!rc)
			rc = listen_at(claim);
		if (!rc && in.n_claims < CLAIMS_MAX)
			in.claim[in.n_claims++] = claim;
	}
	lock_drop(&in.lock);
	return rc;
}

int beside_fd(void)
{
	return atomic_load_explicit(&in.epfd, memory_order_relaxed) - 1;
}

/* Those that the program has closed, one by one. */
static void forget_closed(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < in.n_came; i++)
		if (own_fd_ok(&in.came[i]))
			in.came[n++] = in.came[i];
	in.n_came = n;
}

static bool is_same_user(int fd)
{
	struct ucred cred;
	socklen_t size = sizeof cred;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) && cred.uid == geteuid();
}

/* False: there are no more. */
static bool accept_one(struct exec *x, int claim)
{
	int fd = (int)syscall(SYS_accept4, claim, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct own_fd own;

	if (fd < 0)
		return false;
	if (in.n_came == CAME_MAX)
		forget_closed();
	if (in.n_came == CAME_MAX || !is_same_user(fd)) {
		count_add(x, CTR_WIRE_DROP_USER, 1);
		close(fd);
		return true;
	}
	own = own_fd(fd);
	if (watch(beside_fd(), own.fd, 0))
		own_fd_close(&own);
	else
		in.came[in.n_came++] = own;
	return true;
}

static void end_connection(int fd)
{
	for (uint32_t i = 0; i < in.n_came; i++)
		if (in.came[i].fd == fd) {
			own_fd_close(&in.came[i]);
			in.came[i] = in.came[--in.n_came];
			return;
		}
}

/* One message: packets of one size, but for the last. */
static void cut(struct exec *x, size_t n, beside_packet_fn take, uint64_t now)
{
	struct roce_from from = {.beside = true};
	const uint8_t *bytes = in.message + sizeof(struct wire_handed);
	struct wire_handed h;
	size_t left, step;

	if (n < sizeof h) {
		count_add(x, CTR_WIRE_DROP_LENGTH, 1);
		return;
	}
	memcpy(&h, in.message, sizeof h);
	from.ipv6 = h.ipv6;
	from.src_port = h.src_port;
	from.tos = h.tos;
	memcpy(from.src, h.src, sizeof from.src);
	memcpy(from.dst, h.dst, sizeof from.dst);
	left = n - sizeof h;
	count_add(x, CTR_WIRE_CAME_BYTES, left);
	for (unsigned i = 0; left; i++, bytes += step, left -= step) {
		step = h.segment && h.segment < left ? h.segment : left;
		count_add(x, CTR_WIRE_CAME, 1);
		take(x, &from, bytes, step, i, now);
	}
}

static bool read_some(struct exec *x, int fd, beside_packet_fn take, uint64_t now)
{
	for (int i = 0; i < READS; i++) {
		ssize_t n = syscall(
			SYS_recvfrom, fd, in.message, sizeof in.message, MSG_DONTWAIT, NULL, NULL);

		if (n > 0) {
			cut(x, n, take, now);
			continue;
		}
		if (n == 0 || errno != EAGAIN)
			end_connection(fd);
		return i > 0;
	}
	return true;
}

bool beside_look(struct exec *x, beside_packet_fn take, uint64_t now)
{
	struct epoll_event e[READY];
	int n = beside_fd() < 0 ? 0 : epoll_wait(beside_fd(), e, READY, 0);
	bool came = false;

	for (int i = 0; i < n; i++) {
		int fd = (int)(e[i].data.u64 >> FD_SHIFT);

		if (e[i].data.u64 & IS_CLAIM)
			for (int k = 0; k < ACCEPTS && accept_one(x, fd); k++)
				came = true;
		else
			came |= read_some(x, fd, take, now);
	}
	return came;
}

/* ---- what the program closes ---- */

/* Whoever sends to us connects anew. */
static void end_all(void)
{
	while (in.n_came)
		own_fd_close(&in.came[--in.n_came]);
	atomic_store(&in.epfd, 0);
}

bool beside_whole(void)
{
	bool whole;

	if (beside_fd() < 0 || !lock_try(&in.lock))
		return true;
	whole = own_fd_ok(&in.ep) && rdv_claims_whole();
	if (!whole)
		end_all();
	lock_drop(&in.lock);
	return whole;
}

void beside_mend(void)
{
	lock_take(&in.lock);
	if (in.n_claims && !atomic_load(&in.epfd)) {
		own_fd_close(&in.ep);
		if (!open_poll())
			for (uint32_t i = 0; i < in.n_claims; i++)
				listen_at(in.claim[i]);
	}
	lock_drop(&in.lock);
}

void beside_forked_child(void)
{
	atomic_store_explicit(&out.lock.word, 0, memory_order_relaxed);
	atomic_store_explicit(&in.lock.word, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < PEERS; i++) {
		own_fd_close(&out.peer[i].fd);
		out.peer[i] = (struct peer_claim){.fd = OWN_FD_NONE};
	}
	atomic_store(&out.held, 0);
	end_all();
	own_fd_close(&in.ep);
	in.n_claims = 0;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "roce/port/keeper.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { MARK = UINT32_MAX, INDEX_MAX = 1 << 16 };

/* What goes beside the descriptors. */
struct note {
	uint64_t walk; /* of a mark: which walk's */
	uint32_t index;
	uint32_t has[KEEPER_FDS]; /* 0 or 1 */
};

/* A message with its descriptors, none or two. */
struct parcel {
	struct note note;
	int n;
	int fds[KEEPER_FDS];
};

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int[KEEPER_FDS]))];
};

int keeper_open(struct keeper *k)
{
	const int room = KEEPER_ROOM;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, k->fd))
		return -errno;
	/* what the system allows of it will have to do */
	setsockopt(k->fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	return 0;
}

void keeper_close(struct keeper *k)
{
	close(k->fd[0]);
	close(k->fd[1]);
}

static int send_parcel(const struct keeper *k, const struct parcel *p)
{
	union control c = {0};
	struct iovec iov = {(void *)&p->note, sizeof p->note};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (p->n) {
		m.msg_control = &c;
		m.msg_controllen = CMSG_SPACE(p->n * sizeof(int));
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){.cmsg_len = CMSG_LEN(p->n * sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), p->fds, p->n * sizeof(int));
	}
	return sendmsg(k->fd[0], &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void drop_fds(struct parcel *p)
{
	while (p->n)
		close(p->fds[--p->n]);
}

/* The oldest message, with descriptors of our own; flags: MSG_PEEK leaves it there. */
static int read_parcel(const struct keeper *k, struct parcel *p, int flags)
{
	union control c;
	struct iovec iov = {&p->note, sizeof p->note};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
	ssize_t n = recvmsg(k->fd[1], &m, flags | MSG_CMSG_CLOEXEC);
	struct cmsghdr *h;

	p->n = 0;
	if (n < 0)
		return -errno;
	h = CMSG_FIRSTHDR(&m);
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
		p->n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(p->fds, CMSG_DATA(h), p->n * sizeof(int));
	}
	/* no room for our descriptors: the message is as it was, as long as it was only looked at
	 */
	if (m.msg_flags & MSG_CTRUNC) {
		drop_fds(p);
		return -EMFILE;
	}
	return n == sizeof p->note ? 0 : -EPROTO;
}

/* A sixteenth stays free, so that a full pair can be walked. */
static bool is_full(const struct keeper *k)
{
	int queued = 0, room = 0;
	socklen_t len = sizeof room;

	return ioctl(k->fd[0], SIOCOUTQ, &queued) ||
	       getsockopt(k->fd[0], SOL_SOCKET, SO_SNDBUF, &room, &len) ||
	       queued > room - room / 16;
}

int keeper_put(const struct keeper *k, const struct keeper_entry *e)
{
	struct parcel p = {.note.index = e->index};

	if (is_full(k))
		return -EAGAIN;
	for (int i = 0; i < KEEPER_FDS; i++)
		if (e->fd[i] >= 0) {
			p.note.has[i] = 1;
			p.fds[p.n++] = e->fd[i];
		}
	return send_parcel(k, &p);
}

/* True: the descriptors went to visit. */
static bool unpack(const struct parcel *p, struct keeper_entry *e)
{
	int n = 0;

	e->index = p->note.index;
	for (int i = 0; i < KEEPER_FDS; i++)
		e->fd[i] = p->note.has[i] && n < p->n ? p->fds[n++] : -1;
	return n == p->n;
}

/* Takes away the oldest message, which has been looked at and put again. */
static int take_oldest(const struct keeper *k)
{
	struct parcel p;
	int err = read_parcel(k, &p, 0);

	drop_fds(&p);
	/* its descriptors could not all be opened here, but it is out: so it shall be */
	return err == -EMFILE ? 0 : err;
}

static bool seen_before(uint8_t *seen, uint32_t index)
{
	bool was = seen[index / 8] >> index % 8 & 1;

	seen[index / 8] |= 1 << index % 8;
	return was;
}

struct walk {
	uint64_t number;
	uint8_t *seen;
	int (*visit)(void *arg, const struct keeper_entry *);
	void *arg;
};

/* One message.  1: it was this walk's mark; those of walkers that died go. */
static int next(const struct keeper *k, struct walk *w)
{
	struct keeper_entry e;
	struct parcel p;
	int err = read_parcel(k, &p, MSG_PEEK);

	if (err)
		return err;
	if (p.note.index >= INDEX_MAX || seen_before(w->seen, p.note.index) || !unpack(&p, &e)) {
		drop_fds(&p);
		err = take_oldest(k);
		return err ? err : p.note.index == MARK && p.note.walk == w->number;
	}
	/* behind the mark; only then it goes from here */
	err = send_parcel(k, &p);
	if (!err)
		err = take_oldest(k);
	if (!err)
		return w->visit(w->arg, &e);
	drop_fds(&p);
	return err;
}

int keeper_walk(
	const struct keeper *k, int (*visit)(void *arg, const struct keeper_entry *), void *arg)
{
	const struct parcel mark = {
		.note = {.walk = clock_ns() ^ (uint64_t)getpid() << 40, .index = MARK}};
	struct walk w = {mark.note.walk, calloc(1, INDEX_MAX / 8), visit, arg};
	int rc = w.seen ? send_parcel(k, &mark) : -ENOMEM;

	while (!rc)
		rc = next(k, &w);
	free(w.seen);
	return rc == 1 ? 0 : rc;
}

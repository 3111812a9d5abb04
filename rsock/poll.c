// SPDX-License-Identifier: BSD-3-Clause
/*
 * rpoll() and rselect(): rsockets and other fds together.  For an rsocket a thread sleeps on both
 * of its channels.
 */
#include "rsock/rsock.h"

#include <errno.h>

#include "base/clock.h"
#include "face/poll_many.h"
#include "rsock/config.h"
#include "rsock/table.h"
#include "rsock/wait.h"

static void *find(int fd)
{
	return rs_find(fd);
}

static void put(void *ours)
{
	rs_release(ours);
}

/* Under the lock. */
static int conditions(struct rsocket *s)
{
	return s->closed ? POLLNVAL : rs_ready(s);
}

static int look(void *ours, const struct pollfd *asked)
{
	struct rsocket *s = ours;
	int is;

	(void)asked;
	lock_take(&s->lock);
	rs_progress(s, false);
	is = conditions(s);
	lock_drop(&s->lock);
	return is;
}

static int before(
	void *ours, const struct pollfd *asked, struct sleeper *me, struct pollfd on[POLL_ON])
{
	struct rsocket *s = ours;
	int is;

	lock_take(&s->lock);
	sleeper_enter(&s->sleepers, me);
	rs_arm(s, asked->events);
	rs_progress(s, true);
	is = conditions(s);
	on[0] = (struct pollfd){.fd = s->fd, .events = POLLIN};
	on[1] = (struct pollfd){.fd = s->cc ? s->cc->fd : -1, .events = POLLIN};
	lock_drop(&s->lock);
	return is;
}

/* What came is taken in. */
static int after(
	void *ours, const struct pollfd *asked, struct sleeper *me, const struct pollfd on[POLL_ON])
{
	struct rsocket *s = ours;
	int is;

	(void)asked;
	lock_take(&s->lock);
	sleeper_leave(me);
	if (on[1].revents)
		rs_take_events(s);
	rs_progress(s, on[0].revents != 0);
	is = conditions(s);
	lock_drop(&s->lock);
	return is;
}

/* As poll(2), ns below 0: for ever; sets errno. */
static int poll_rs(struct pollfd *fds, nfds_t n, int64_t ns)
{
	struct poll_face face = {
		.find = find,
		.put = put,
		.look = look,
		.before = before,
		.after = after,
		.look_ns = rs_look_ns(),
		.nap_ns = rs_nap_ns(),
	};
	int ret = poll_many(&face, fds, n, ns);

	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll_rs(fds, nfds, timeout < 0 ? -1 : timeout * (int64_t)NSEC_PER_MSEC);
}

/* ---- rselect ---- */

static bool in(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

static int answer(fd_set *set, int fd, bool ready)
{
	if (!in(set, fd))
		return 0;
	if (!ready)
		FD_CLR(fd, set);
	return ready;
}

/* How long that is, -1: for ever. */
static int64_t to_ns(const struct timeval *t)
{
	const time_t most = INT64_MAX / NSEC_PER_SEC / 4;

	if (!t || t->tv_sec > most || t->tv_usec / (NSEC_PER_SEC / NSEC_PER_USEC) > (uint64_t)most)
		return -1;
	return t->tv_sec * (int64_t)NSEC_PER_SEC + t->tv_usec * (int64_t)NSEC_PER_USEC;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	int n = 0, ret;

	if (nfds < 0 || nfds > FD_SETSIZE ||
		(timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0))) {
		errno = EINVAL;
		return -1;
	}
	for (int fd = 0; fd < nfds; fd++) {
		short events = (in(readfds, fd) ? POLLIN : 0) | (in(writefds, fd) ? POLLOUT : 0) |
			       (in(exceptfds, fd) ? POLLPRI : 0);

		if (events)
			fds[n++] = (struct pollfd){.fd = fd, .events = events};
	}
	ret = poll_rs(fds, n, to_ns(timeout));
	if (ret < 0)
		return ret;
	ret = 0;
	for (int i = 0; i < n; i++) {
		short r = fds[i].revents;

		if (r & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
		ret += answer(readfds, fds[i].fd, r & (POLLIN | POLLHUP | POLLERR));
		ret += answer(writefds, fds[i].fd, r & (POLLOUT | POLLERR));
		ret += answer(exceptfds, fds[i].fd, r & POLLPRI);
	}
	return ret;
}

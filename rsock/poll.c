// SPDX-License-Identifier: BSD-3-Clause
/*
 * rpoll() and rselect(): rsockets and other fds together.  The thread sleeps in poll(2) for the
 * fds that are none, and for both channels of each rsocket.
 */
#include "rsock/rsock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rsock/config.h"
#include "rsock/table.h"
#include "rsock/wait.h"

enum { FEW = 32 };

/* Of each entry of the program's array. */
struct entry {
	struct rsocket *s; /* NULL: another kind of fd */
	struct rs_sleeper sleeper;
};

struct polled {
	struct pollfd *fds;
	nfds_t n;
	struct entry *entry;
	struct pollfd *real; /* n fds, n completion channels, our eventfd */
	nfds_t n_rs;         /* rsockets among them */
	struct entry few[FEW];
	struct pollfd few_real[2 * FEW + 1];
};

static int begin(struct polled *p, struct pollfd *fds, nfds_t n)
{
	p->fds = fds;
	p->n = n;
	p->n_rs = 0;
	p->entry = n <= FEW ? p->few : calloc(n, sizeof *p->entry);
	p->real = n <= FEW ? p->few_real : calloc(2 * n + 1, sizeof *p->real);
	if (!p->entry || !p->real)
		return -ENOMEM;
	for (nfds_t i = 0; i < n; i++) {
		p->entry[i].s = rs_find(fds[i].fd);
		p->n_rs += p->entry[i].s != NULL;
	}
	return 0;
}

static void end(struct polled *p)
{
	for (nfds_t i = 0; p->entry && i < p->n; i++)
		if (p->entry[i].s)
			rs_release(p->entry[i].s);
	if (p->entry != p->few)
		free(p->entry);
	if (p->real != p->few_real)
		free(p->real);
}

static bool ask(struct rsocket *s, struct pollfd *fd)
{
	short ready = s->closed ? POLLNVAL : rs_ready(s);

	fd->revents = ready & (fd->events | POLLERR | POLLHUP | POLLNVAL);
	return fd->revents != 0;
}

/* How many rsockets are ready. */
static int ask_all(struct polled *p)
{
	int n = 0;

	for (nfds_t i = 0; i < p->n; i++) {
		struct rsocket *s = p->entry[i].s;

		if (!s)
			continue;
		lock_take(&s->lock);
		rs_progress(s, false);
		n += ask(s, &p->fds[i]);
		lock_drop(&s->lock);
	}
	return n;
}

/* Adds those of the other fds that are ready. */
static int ask_real(struct polled *p, int ready, int timeout)
{
	int n;

	for (nfds_t i = 0; i < p->n; i++) {
		p->real[i] = p->fds[i];
		if (p->entry[i].s)
			p->real[i].fd = -1;
	}
	n = poll(p->real, p->n, timeout);
	if (n < 0)
		return ready ? ready : -errno;
	for (nfds_t i = 0; i < p->n; i++)
		if (!p->entry[i].s)
			p->fds[i].revents = p->real[i].revents;
	return ready + n;
}

/* Enters this thread as a sleeper of all; how many are ready after all. */
static int prepare(struct polled *p, int wake)
{
	int n = 0;

	for (nfds_t i = 0; i < p->n; i++) {
		struct rsocket *s = p->entry[i].s;

		p->real[i] = p->fds[i];
		p->real[p->n + i] = (struct pollfd){.fd = -1};
		if (!s)
			continue;
		lock_take(&s->lock);
		p->entry[i].sleeper.fd = wake;
		sleeper_enter(s, &p->entry[i].sleeper);
		rs_arm(s, p->fds[i].events);
		rs_progress(s, true);
		n += ask(s, &p->fds[i]);
		p->real[i].events = POLLIN;
		p->real[p->n + i].fd = s->cc ? s->cc->fd : -1;
		p->real[p->n + i].events = POLLIN;
		lock_drop(&s->lock);
	}
	p->real[2 * p->n] = (struct pollfd){.fd = wake, .events = POLLIN};
	return n;
}

/* The opposite; what came for rsockets is taken in. */
static int recover(struct polled *p)
{
	int n = 0;

	for (nfds_t i = 0; i < p->n; i++) {
		struct rsocket *s = p->entry[i].s;

		if (!s) {
			p->fds[i].revents = p->real[i].revents;
			n += p->real[i].revents != 0;
			continue;
		}
		lock_take(&s->lock);
		sleeper_leave(&p->entry[i].sleeper);
		if (p->real[p->n + i].revents)
			rs_take_events(s);
		rs_progress(s, p->real[i].revents != 0);
		n += ask(s, &p->fds[i]);
		lock_drop(&s->lock);
	}
	return n;
}

static int sleep_once(struct polled *p, int timeout)
{
	int wake = sleeper_fd();
	int ready = prepare(p, wake), ret, err;

	ret = poll(p->real, 2 * p->n + 1, ready ? 0 : timeout);
	err = errno;
	if (ret < 0)
		for (nfds_t i = 0; i < 2 * p->n; i++)
			p->real[i].revents = 0;
	if (wake >= 0)
		sleeper_drain(wake);
	ready = recover(p);
	return ready || ret >= 0 ? ready : -err;
}

static int ms_left(uint64_t deadline)
{
	uint64_t now = clock_ns();

	return deadline > now ? (int)((deadline - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC) : 0;
}

static int poll_all(struct polled *p, int timeout)
{
	uint64_t deadline = clock_ns() + (timeout > 0 ? timeout * (uint64_t)NSEC_PER_MSEC : 0);
	uint64_t spin_until = clock_ns() + rs_spin_ns();
	int n;

	do {
		n = ask_all(p);
		if (n || timeout == 0)
			return p->n == p->n_rs ? n : ask_real(p, n, 0);
	} while (clock_ns() < spin_until);
	for (;;) {
		n = sleep_once(p, rs_sleep_ms(timeout < 0 ? -1 : ms_left(deadline)));
		if (n || (timeout > 0 && clock_ns() >= deadline))
			return n;
	}
}

static int poll_fds(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct polled p;
	int ret = begin(&p, fds, nfds);

	if (!ret)
		ret = p.n_rs ? poll_all(&p, timeout) : poll(fds, nfds, timeout);
	if (ret < 0 && !p.n_rs && p.entry && p.real)
		ret = -errno;
	end(&p);
	return ret;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	int ret = poll_fds(fds, nfds, timeout);

	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
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

static int to_ms(const struct timeval *t)
{
	return t ? (int)(t->tv_sec * 1000 + (t->tv_usec + 999) / 1000) : -1;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	int n = 0, ret;

	if (nfds < 0 || nfds > FD_SETSIZE) {
		errno = EINVAL;
		return -1;
	}
	for (int fd = 0; fd < nfds; fd++) {
		short events = (in(readfds, fd) ? POLLIN : 0) | (in(writefds, fd) ? POLLOUT : 0) |
			       (in(exceptfds, fd) ? POLLPRI : 0);

		if (events)
			fds[n++] = (struct pollfd){.fd = fd, .events = events};
	}
	ret = rpoll(fds, n, to_ms(timeout));
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

// SPDX-License-Identifier: BSD-3-Clause
#include "scif/face/poll.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spin.h"
#include "scif/ep/ready.h"
#include "scif/ep/sys.h"
#include "scif/link/bell.h"
#include "scif/link/link.h"
#include "scif/link/service.h"

enum { ALWAYS = POLLERR | POLLHUP | POLLNVAL, SPIN_NS = 10000, FEW = 16 };
/* poll(2) holds on to what close(2) and dup2(2) took from us: so often we see for ourselves. */
static const uint64_t AGAIN_NS = 400 * (uint64_t)NSEC_PER_MSEC;

/* A thread that sleeps in poll(2) for us. */
struct sleeper {
	int fd; /* eventfd */
	struct sleeper *next;
};

static struct {
	struct lock lock;
	struct sleeper *list;
} sleepers;

void poll_fd_closed(void)
{
	uint64_t one = 1;

	lock_take(&sleepers.lock);
	for (struct sleeper *s = sleepers.list; s; s = s->next)
		(void)!write(s->fd, &one, sizeof(one));
	lock_drop(&sleepers.lock);
}

void poll_forked(void)
{
	sleepers.list = NULL;
	atomic_store_explicit(&sleepers.lock.word, 0, memory_order_relaxed);
}

/* What is true of a connected endpoint; makes its fd show the same. */
static short connected(struct scif_ep *ep, int fd, bool sleeps)
{
	short is = 0;

	if (sleeps)
		bell_before_poll(ep);
	else
		atomic_store_explicit(&ep->used, clock_ns(), memory_order_relaxed);
	link_poll(ep);
	if (link_rx_avail(ep))
		is |= POLLIN;
	else
		ep_unmark(ep, fd);
	if (ep->state != EP_CONNECTED)
		return is | POLLHUP;
	if (link_has_tx_room(ep))
		is |= POLLOUT;
	else
		ep_fill(ep, fd);
	link_ready(ep);
	return is;
}

static short state_of(struct scif_ep *ep, int fd, bool sleeps)
{
	switch (ep->state) {
	case EP_LISTENING:
		if (!ep->requests)
			ep_unmark(ep, fd);
		return ep->requests ? POLLIN : 0;
	case EP_CONNECTED:
		return connected(ep, fd, sleeps);
	case EP_CONNECTING:
		return 0;
	case EP_DISCONNECTED:
		return POLLHUP | (link_rx_avail(ep) ? POLLIN : 0);
	case EP_BOUND:
		return ep->collect ? POLLOUT : POLLERR;
	case EP_CLOSED:
		return POLLNVAL;
	default:
		return POLLERR;
	}
}

/* Looks at one entry; false: it is no endpoint, ask the kernel. */
static bool look_at(struct pollfd *p, bool sleeps)
{
	struct scif_ep *ep;

	p->revents = 0;
	if (p->fd < 0 || ep_find(p->fd, &ep))
		return false;
	if (ep->inherited) { /* its fd shows what is true */
		ep_put(ep);
		return false;
	}
	lock_take(&ep->lock);
	p->revents = state_of(ep, p->fd, sleeps) & (p->events | ALWAYS);
	lock_drop(&ep->lock);
	ep_put(ep);
	return true;
}

/*
 * Looks at all; how many have something, also of others as the kernel says now.  sleeps: the
 * caller will, if there is nothing.
 */
static int look(struct pollfd *fds, unsigned n, bool sleeps)
{
	bool others = false;
	int found = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!look_at(&fds[i], sleeps))
			others = true;
		else
			found += fds[i].revents != 0;
	}
	for (unsigned i = 0; others && i < n; i++) {
		struct pollfd p = fds[i];

		if (fds[i].revents || look_at(&p, false) || sys_poll(&p, 1, 0) <= 0)
			continue;
		fds[i].revents = p.revents;
		found++;
	}
	return found;
}

/* Sleeps for a while in poll(2) with an eventfd at the end of the copy `all`. */
static int sleep_until(struct pollfd *all, struct pollfd *fds, unsigned n, uint64_t until)
{
	struct sleeper me = {.fd = all[n].fd}, **at;
	uint64_t now = clock_ns(), left = until > now ? until - now : 0;
	struct timespec ts = {0};
	int ret;

	if (left > AGAIN_NS)
		left = AGAIN_NS;
	ts.tv_sec = left / NSEC_PER_SEC;
	ts.tv_nsec = left % NSEC_PER_SEC;
	lock_take(&sleepers.lock);
	me.next = sleepers.list;
	sleepers.list = &me;
	lock_drop(&sleepers.lock);
	memcpy(all, fds, n * sizeof(*fds));
	ret = look(fds, n, true); /* once more: now we are seen by who closes */
	if (!ret && ppoll(all, n + 1, &ts, NULL) < 0)
		ret = -errno;
	lock_take(&sleepers.lock);
	for (at = &sleepers.list; *at != &me;)
		at = &(*at)->next;
	*at = me.next;
	lock_drop(&sleepers.lock);
	return ret;
}

/* Sleeps until there is something or it is time. */
static int wait_for(struct pollfd *fds, unsigned n, uint64_t until)
{
	struct pollfd few[FEW + 1], *all = n > FEW ? malloc((n + 1) * sizeof(*all)) : few;
	uint64_t told;
	int ret = 0;

	if (!all)
		return -ENOMEM;
	all[n] = (struct pollfd){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = POLLIN};
	while (!ret && clock_ns() < until) {
		ret = sleep_until(all, fds, n, until);
		if (!ret)
			ret = look(fds, n, false);
		(void)!read(all[n].fd, &told, sizeof(told));
	}
	close(all[n].fd);
	if (all != few)
		free(all);
	return ret;
}

int poll_check(const void *entries, unsigned n)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && n > rl.rlim_cur)
		return -EINVAL;
	return n && !entries ? -EFAULT : 0;
}

int poll_fds(struct pollfd *fds, unsigned n, long timeout)
{
	uint64_t start = clock_ns();
	uint64_t until = timeout < 0 ? UINT64_MAX : start + timeout * (uint64_t)NSEC_PER_MSEC;
	int ret = poll_check(fds, n);

	if (ret)
		return ret;
	do
		ret = look(fds, n, false);
	while (!ret && service_may_spin() && timeout &&
		clock_ns() - start < spin_limit_ns(SPIN_NS));
	return ret || !timeout ? ret : wait_for(fds, n, until);
}

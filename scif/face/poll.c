// SPDX-License-Identifier: BSD-3-Clause
#include "scif/face/poll.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/spin.h"
#include "face/poll_many.h"
#include "scif/link/bell.h"
#include "scif/link/link.h"

/* poll(2) holds on to what close(2) and dup2(2) took from us: so often we see for ourselves. */
static const uint64_t AGAIN_NS = 400 * (uint64_t)NSEC_PER_MSEC;

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
		standin_unmark(&ep->standin, fd);
	if (ep->state != EP_CONNECTED)
		return is | POLLHUP;
	if (link_has_tx_room(ep))
		is |= POLLOUT;
	else
		standin_fill(&ep->standin, fd);
	link_ready(ep);
	return is;
}

static short state_of(struct scif_ep *ep, int fd, bool sleeps)
{
	switch (ep->state) {
	case EP_LISTENING:
		if (!ep->requests)
			standin_unmark(&ep->standin, fd);
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

static void *find(int fd)
{
	struct scif_ep *ep;

	if (fd < 0 || ep_find(fd, &ep))
		return NULL;
	if (!ep->inherited)
		return ep;
	ep_put(ep); /* its fd shows what is true */
	return NULL;
}

static void put(void *ours)
{
	ep_put(ours);
}

static int look(void *ours, const struct pollfd *asked)
{
	struct scif_ep *ep = ours;
	int is;

	lock_take(&ep->lock);
	is = state_of(ep, asked->fd, false);
	lock_drop(&ep->lock);
	return is;
}

/* Is fd still the endpoint's?  Without its lock. */
static bool still(const struct scif_ep *ep, int fd)
{
	struct scif_ep *now;

	if (ep_find(fd, &now))
		return false;
	ep_put(now);
	return now == ep;
}

/* Its conditions, or that fd is something else by now. */
static int current(struct scif_ep *ep, int fd, bool sleeps)
{
	int is;

	if (!still(ep, fd))
		return POLL_NOT_OURS;
	lock_take(&ep->lock);
	is = state_of(ep, fd, sleeps);
	lock_drop(&ep->lock);
	return is;
}

static void leave(struct scif_ep *ep, struct sleeper *me)
{
	lock_take(&ep->lock);
	sleeper_leave(me);
	lock_drop(&ep->lock);
}

static int before(
	void *ours, const struct pollfd *asked, struct sleeper *me, struct pollfd on[POLL_ON])
{
	struct scif_ep *ep = ours;
	int is;

	lock_take(&ep->lock);
	sleeper_enter(&ep->pollers, me); /* who closes the fd from now on finds us here */
	lock_drop(&ep->lock);
	is = current(ep, asked->fd, true);
	if (is == POLL_NOT_OURS)
		leave(ep, me);
	on[0] = *asked;
	return is;
}

static int after(
	void *ours, const struct pollfd *asked, struct sleeper *me, const struct pollfd on[POLL_ON])
{
	(void)on;
	leave(ours, me);
	return current(ours, asked->fd, false);
}

int poll_check(const void *entries, unsigned n)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && n > rl.rlim_cur)
		return -EINVAL;
	return n && !entries ? -EFAULT : 0;
}

int poll_eps(struct pollfd *fds, unsigned n, long timeout)
{
	struct poll_face face = {
		.find = find,
		.put = put,
		.look = look,
		.before = before,
		.after = after,
		.look_ns = spin_limit_ns(LOOK_NS),
		.nap_ns = AGAIN_NS,
	};
	bool for_ever = timeout < 0 || timeout > INT64_MAX / NSEC_PER_MSEC;
	int ret = poll_check(fds, n);

	return ret ? ret : poll_many(&face, fds, n, for_ever ? -1 : timeout * NSEC_PER_MSEC);
}

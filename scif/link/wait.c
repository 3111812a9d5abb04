// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spin.h"
#include "scif/ep/ep.h"
#include "scif/link/bell.h"
#include "scif/link/link.h"
#include "scif/link/service.h"

enum { SPIN_NS = 10000, LONG_SPIN_NS = 60000, SPIN_LOOKS = 8, MANY_WINS = 8 };

/* Sleeps until *seq is not value; at most until that time. */
static int sleep_on(struct scif_ep *ep, uint32_t value, uint64_t until)
{
	struct timespec ts = {.tv_sec = until / NSEC_PER_SEC, .tv_nsec = until % NSEC_PER_SEC};
	int err = errno, ret = 0;

	atomic_fetch_add_explicit(&ep->sleepers, 1, memory_order_seq_cst);
	if (syscall(SYS_futex, &ep->seq, FUTEX_WAIT_BITSET_PRIVATE, value, until ? &ts : NULL, NULL,
		    FUTEX_BITSET_MATCH_ANY) < 0 &&
		errno != EAGAIN)
		ret = -errno;
	atomic_fetch_sub_explicit(&ep->sleepers, 1, memory_order_seq_cst);
	errno = err;
	return ret;
}

/*
 * Two programs that answer each other at once, and have fallen asleep, take longer to wake each
 * other than they look before they sleep, for ever.  So who was woken soon looks for longer the
 * next time, and, where that was in vain, not again for a number of sleeps that doubles.
 */
static uint64_t spin_begins(struct scif_ep *ep)
{
	if (!ep->long_spin)
		return spin_limit_ns(SPIN_NS);
	if (++ep->spin_wins > MANY_WINS)
		ep->spin_fails = 0;
	return spin_limit_ns(LONG_SPIN_NS);
}

static void spin_ended(struct scif_ep *ep)
{
	enum { MAX_DEBT = 256 };

	if (!ep->long_spin)
		return;
	ep->long_spin = false;
	ep->spin_fails = ep->spin_fails ? 2 * ep->spin_fails : 1;
	if (ep->spin_fails > MAX_DEBT)
		ep->spin_fails = MAX_DEBT;
	ep->spin_debt = ep->spin_fails;
}

static void slept(struct scif_ep *ep, uint64_t ns)
{
	if (ns > LONG_SPIN_NS)
		return;
	if (ep->spin_debt)
		ep->spin_debt--;
	else
		ep->long_spin = true;
	ep->spin_wins = 0;
}

/* Some looks for completions, until something changes; others get the lock between them. */
static void spin_on(struct scif_ep *ep, uint32_t value)
{
	ep->inside++;
	for (int i = 0; i < SPIN_LOOKS; i++) {
		lock_drop(&ep->lock);
		cpu_relax();
		lock_take(&ep->lock);
		link_poll(ep);
		if (atomic_load_explicit(&ep->seq, memory_order_relaxed) != value)
			break;
	}
	ep->inside--;
}

int ep_wait(struct scif_ep *ep, uint64_t *spin, uint64_t until)
{
	uint32_t value = atomic_load_explicit(&ep->seq, memory_order_relaxed);
	uint64_t now = clock_ns();
	int ret = 0;

	if (until && now >= until)
		return -ETIMEDOUT;
	if (!*spin)
		*spin = now + spin_begins(ep);
	atomic_store_explicit(&ep->used, now, memory_order_relaxed);
	if (now < *spin && link_is_live(ep) && service_may_spin()) {
		spin_on(ep, value);
		return 0;
	}
	if (link_is_live(ep)) {
		spin_ended(ep);
		bell_before_sleep(ep);
	}
	link_ready(ep);
	lock_drop(&ep->lock);
	ret = sleep_on(ep, value, until);
	lock_take(&ep->lock);
	slept(ep, clock_ns() - now);
	link_poll(ep);
	return ret;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "scif/ep/ep.h"
#include "scif/link/bell.h"
#include "scif/link/link.h"

enum { SPIN_LOOKS = 8 };

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
		*spin = now + look_begins(&ep->look, LOOK_NS);
	atomic_store_explicit(&ep->used, now, memory_order_relaxed);
	if (now < *spin && link_is_live(ep)) {
		spin_on(ep, value);
		return 0;
	}
	if (link_is_live(ep)) {
		look_failed(&ep->look);
		bell_before_sleep(ep);
	}
	link_ready(ep);
	lock_drop(&ep->lock);
	ret = sleep_on(ep, value, until);
	lock_take(&ep->lock);
	look_slept(&ep->look, clock_ns() - now);
	link_poll(ep);
	return ret;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "scif/face/let_go.h"

#include <time.h>

#include "base/clock.h"
#include "scif/ep/ep.h"
#include "scif/link/close.h"

/* Waits until another thread, which noticed first that its fd is closed, has taken it down. */
static void await_close(struct scif_ep *ep)
{
	const struct timespec nap = {.tv_nsec = 20 * NSEC_PER_USEC};

	while (!atomic_load_explicit(&ep->gone, memory_order_acquire))
		nanosleep(&nap, NULL);
}

void ep_let_go(struct scif_ep *ep)
{
	bool last;

	ep_fd_lost();
	lock_take(&ep->lock);
	last = ep_fd_closed(ep);
	ep_changed(ep);
	sleepers_wake(ep->pollers); /* poll(2) holds on to what was closed */
	lock_drop(&ep->lock);
	if (last && ep_remove(ep)) {
		ep_close(ep);
		ep_put(ep);
	} else if (last) {
		await_close(ep);
	}
}

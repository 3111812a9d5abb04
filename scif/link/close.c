// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/close.h"

#include "base/clock.h"
#include "scif/ep/ep.h"
#include "scif/link/bell.h"
#include "scif/link/cm.h"
#include "scif/link/half.h"
#include "scif/link/link.h"
#include "scif/link/parts.h"
#include "scif/link/wait.h"

static const uint64_t FLUSH_NS = 2 * (uint64_t)NSEC_PER_SEC;

void ep_refuse(struct scif_ep *ep)
{
	rdma_reject(ep->id, NULL, 0);
	ep_close(ep);
	ep_put(ep);
}

/* Requests that nobody accepted any more. */
static void refuse_requests(struct scif_ep *ep)
{
	struct scif_ep *r;

	lock_take(&ep->lock);
	r = ep->requests;
	ep->requests = NULL;
	lock_drop(&ep->lock);
	while (r) {
		struct scif_ep *next = r->next_request;

		ep_refuse(r);
		r = next;
	}
}

/* Lets what was sent, and what was begun, reach the peer. */
static void flush(struct scif_ep *ep)
{
	uint64_t now = clock_ns(), until = now + FLUSH_NS, spin = 0;

	link_settle(ep);
	for (; ep->state == EP_CONNECTED && !link_idle(ep) && now < until; now = clock_ns()) {
		ep_wait(ep, &spin, now + NSEC_PER_MSEC); /* we may be the service ourselves */
		link_settle(ep);
	}
}

void ep_close(struct scif_ep *ep)
{
	bool was_connected;

	lock_take(&ep->lock);
	if (ep->state == EP_INHERITED) {
		lock_drop(&ep->lock);
		link_calls.heir_forget(ep);
		atomic_store_explicit(&ep->gone, 1, memory_order_release);
		return;
	}
	flush(ep);
	was_connected = ep->state == EP_CONNECTED || ep->state == EP_CONNECTING;
	cm_abandon(ep);
	ep->state = EP_CLOSED;
	link_fail(ep);
	ep_changed(ep);
	lock_drop(&ep->lock);
	bell_forget(ep);
	refuse_requests(ep);
	half_drop(ep);
	if (ep->id && was_connected)
		rdma_disconnect(ep->id);
	link_destroy(&ep->link, ep->id);
	windows_free(&ep->own, window_drop);
	windows_free(&ep->theirs, NULL);
	link_free_pd(&ep->link);
	if (ep->id)
		rdma_destroy_id(ep->id);
	ep->id = NULL;
	port_leave(ep->port);
	atomic_store_explicit(&ep->gone, 1, memory_order_release);
}

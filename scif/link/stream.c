// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/stream.h"

#include <errno.h>

#include "scif/link/link.h"
#include "scif/link/wait.h"

/* Callers that block keep others of the same direction out, who would mix their bytes in. */
static bool enter(struct lock *direction, bool block)
{
	if (block)
		lock_take(direction);
	else
		return lock_try(direction);
	return true;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Sends what has room; how much. */
static uint32_t send_some(struct scif_ep *ep, int fd, const uint8_t *msg, uint32_t len)
{
	uint32_t n = least(len, link_tx_room(ep));

	if (n)
		link_put(ep, msg, n);
	if (ep->state == EP_CONNECTED && !link_has_tx_room(ep))
		standin_fill(&ep->standin, fd);
	return n;
}

int stream_send(struct scif_ep *ep, int fd, const uint8_t *msg, int len, bool block)
{
	uint64_t spin = 0;
	int done = 0, ret;

	if (!enter(&ep->sending, block))
		return 0;
	lock_take(&ep->lock);
	check_sent(ep, msg, len);
	link_poll(ep); /* as ep_wait() does */
	link_await_room(ep, len);
	for (;;) {
		ret = ep_connected(ep);
		if (ret)
			break;
		done += send_some(ep, fd, msg + done, len - done);
		if (done < len && link_tx_room(ep)) {
			/* it was read just now: nobody will wake us for it */
			lock_drop(&ep->lock);
			lock_take(&ep->lock);
			continue;
		}
		if (done == len || !block)
			break;
		ret = ep_wait(ep, &spin, 0);
		if (ret)
			break;
	}
	link_ready(ep);
	lock_drop(&ep->lock);
	lock_drop(&ep->sending);
	return done ? done : ret;
}

static uint32_t recv_some(struct scif_ep *ep, int fd, uint8_t *msg, uint32_t len)
{
	uint32_t n = least(len, link_rx_avail(ep));

	if (n)
		link_take(ep, msg, n);
	if (!link_rx_avail(ep))
		standin_unmark(&ep->standin, fd);
	return n;
}

int stream_recv(struct scif_ep *ep, int fd, uint8_t *msg, int len, bool block)
{
	uint64_t spin = 0;
	int done = 0, ret;

	if (!enter(&ep->receiving, block))
		return 0;
	lock_take(&ep->lock);
	link_poll(ep);
	for (;;) {
		if (ep->state == EP_CONNECTED || ep->state == EP_DISCONNECTED)
			done += recv_some(ep, fd, msg + done, len - done);
		ret = ep_connected(ep);
		if (ret || done == len || !block)
			break;
		ret = ep_wait(ep, &spin, 0);
		if (ret)
			break;
	}
	link_ready(ep);
	lock_drop(&ep->lock);
	lock_drop(&ep->receiving);
	return done ? done : ret;
}

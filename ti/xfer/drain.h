/* SPDX-License-Identifier: BSD-3-Clause */
/* From completions of the adapter to elements in queues. */
#pragma once

#include "ti/xfer/connection.h"

/* The locks of a connection's queues. */
void drain_lock(struct conn *c);
void drain_unlock(struct conn *c);

/*
 * Takes what the adapter completed, at most max requests; how many.  Elements that a callback waits
 * for go to c->ready, others to their queue.  Under the locks.
 */
int drain(struct conn *c, int max);

/* Completes an element with a status, whatever the adapter knows of it.  Under the locks. */
void drain_finish(struct conn *c, struct element *el, ti_status_t status);

/* Lets the next completion, and those to come at the latest then, raise an event.  Under the locks.
 */
void drain_arm(struct conn *c);

/* The queue of a kind of transfer. */
static inline struct cq *drain_queue(const struct conn *c, enum xfer x)
{
	return x == XFER_RECV ? c->recv_cq : c->send_cq;
}

/* The callback of a kind of transfer. */
static inline ti_xfer_cb_t drain_callback(const struct conn *c, enum xfer x)
{
	return x == XFER_RECV   ? c->comp.pfn_recv_cb
	       : x == XFER_SEND ? c->comp.pfn_send_cb
				: c->comp.pfn_rdma_cb;
}

/* Has it any callback for transfers? */
static inline bool conn_calls_back(const struct conn *c)
{
	return c->comp.pfn_send_cb || c->comp.pfn_recv_cb || c->comp.pfn_rdma_cb;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair of a connection: messages, credits, and the order of completions.  All under the
 * endpoint's lock but where said.  scif/ep/wire.h has the protocol.
 */
#pragma once

#include "scif/ep/ep.h"

/* Makes the queue pair for ep->id, with its receives posted. */
int link_create(struct scif_ep *ep);
/* What the peer must know; and taking what it said to id, its adapter among it.  -EPROTO: not our
 * protocol. */
struct wire_hello link_hello(const struct scif_ep *ep, struct scif_id dst);
int link_meet(struct scif_ep *ep, const struct rdma_cm_id *id, const struct wire_hello *hello);

/* Takes completions, acts on them, sends what waits.  Resets the endpoint if the peer broke rules.
 */
void link_poll(struct scif_ep *ep);
/* Makes the fd show what is true. */
void link_ready(struct scif_ep *ep);
/* Arms the completion queue for its next event, then polls. */
void link_arm(struct scif_ep *ep);

/* Is there a queue pair in use? */
bool link_is_live(const struct scif_ep *ep);
/* Is everything sent and complete?  Where that is to be known: link_settle() before each look. */
bool link_idle(const struct scif_ep *ep);
void link_settle(struct scif_ep *ep);

/* Forgets what waits for completions or answers. */
void link_fail(struct scif_ep *ep);
/* The connection is over, for whatever reason: what waits fails.  Under the lock. */
void ep_reset(struct scif_ep *ep);
/*
 * Without the lock, once nobody uses the link any more: the queue pair of id and its rings; then,
 * when there are no windows either, the protection domain.
 */
void link_destroy(struct link *l, struct rdma_cm_id *id);
void link_free_pd(struct link *l);

/* May an RMA be posted?  The rest of the queue is for messages. */
bool link_has_room(const struct scif_ep *ep);
/* Posts one request, signaled, with its number as wr_id: that number, or -errno (then ep is
 * reset). */
int64_t link_post(struct scif_ep *ep, struct ibv_send_wr *wr);
/* Does a (malloced) when request a->wr is complete, now if it is. */
void link_after(struct scif_ep *ep, struct after *a);

/* Queues a message.  -ENOBUFS: too many wait (a peer that asks and does not listen). */
int link_say(struct scif_ep *ep, enum wire_op op, uint32_t id, const uint64_t *arg, int args);
/*
 * Waits until what was said of windows, opened and closed, lies with the peer, which takes it
 * before whatever it does next.
 */
void link_await_arrival(struct scif_ep *ep);
/* Asks the peer and waits for the answer, of up to 5 words.  -ECONNRESET. */
int link_ask(struct scif_ep *ep, enum wire_op op, const uint64_t *arg, int args, uint64_t *answer,
	int words);

/* Bytes that fit into the peer's queue, as far as we know; that wait in ours. */
uint32_t link_tx_room(struct scif_ep *ep);
uint32_t link_rx_avail(const struct scif_ep *ep);
/* The peer may have taken more: reads how much, unless there is room for n bytes; waits a little.
 */
void link_await_room(struct scif_ep *ep, uint32_t n);
/* Is there any room?  Reads it once before it says no, and later is told. */
bool link_has_tx_room(struct scif_ep *ep);
/* Sends or takes n bytes, which there is room for, or which are there. */
void link_put(struct scif_ep *ep, const uint8_t *p, uint32_t n);
void link_take(struct scif_ep *ep, uint8_t *p, uint32_t n);

/* SPDX-License-Identifier: BSD-3-Clause */
/* From elements to requests of the adapter. */
#pragma once

#include "ti/xfer/connection.h"

/*
 * Checks and claims a list of elements for messages in that direction, all or none.  Reads lengths
 * into the elements.
 */
ti_status_t post_claim_messages(struct conn *c, ti_data_element_t *list, enum xfer x, uint32_t *n);

/* Gives the first n of the list back to the program. */
void post_unclaim(ti_data_element_t *list, uint32_t n);

/* Checks an element's local buffers and claims it; *bytes: their sum. */
ti_status_t post_claim_local(struct conn *c, struct element *el, uint32_t max_bufs);

/* Sets what every posted element has. */
void post_prepare(struct conn *c, struct element *el, enum xfer x, enum ibv_wr_opcode opcode);

/* The SEND flags, immediate data and wake-up that an element's options ask for. */
void post_options(struct element *el);

/* Divides an RDMA element into the requests that it needs. */
void post_divide(const struct conn *c, struct element *el);

/* Is there room for n more elements that go out?  Under sq_lock. */
bool post_has_room(const struct conn *c, uint32_t n);

/*
 * Posts an element, as far as the send queue has room; the rest follows when it has.  One that the
 * adapter refuses completes with TI_ERROR, and the connection breaks.  Under sq_lock.  True: it was
 * posted altogether at once.
 */
bool post_send(struct conn *c, struct element *el);

/* One more request for an element of which one has completed.  Under the queues' locks. */
void post_again(struct conn *c, struct element *el);

/* Posts more of what waits.  Under the queues' locks. */
void post_waiting(struct conn *c);

/* Posts a receive.  Under rq_lock.  Negative errno: it was not posted. */
int post_recv(struct conn *c, struct element *el);

/* The key for a buffer: the pool's own, else what its descriptor says. */
uint32_t post_key(const struct conn *c, const struct element *el, const ti_local_data_desc_t *d);

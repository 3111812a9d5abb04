/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and rdma_cm. */
#pragma once

#include "rsock/rsock.h"

int conn_bind(struct rsocket *s, const struct sockaddr *addr, socklen_t len);

int conn_listen(struct rsocket *s, int backlog);

/* Begins to connect; -EINPROGRESS, or how it ended already. */
int conn_start(struct rsocket *s, const struct sockaddr *addr, socklen_t len);

/* Turns the request that waits into *out.  -EAGAIN: there is none (any more). */
int conn_accept(struct rsocket *s, struct rsocket **out);

/* Takes all events that wait. */
void conn_events(struct rsocket *s);

/* The connection is lost, or failed: err is for SO_ERROR. */
void conn_end(struct rsocket *s, int err);

/* Tells the peer that no more will come, if it can be told by then: -EAGAIN. */
int conn_fin(struct rsocket *s, uint64_t deadline);

/* Ends whatever there is, waiting for data under way as SO_LINGER says. */
void conn_close(struct rsocket *s);

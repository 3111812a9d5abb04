/* SPDX-License-Identifier: BSD-3-Clause */
/* An id with its queues: what a request hands on to the connection that it becomes. */
#pragma once

#include <rdma/rdma_cma.h>

#include "rpma/conn_cfg.h"
#include "rpma/cq.h"

/* An id with its QP and completion queues: each member may be NULL. */
struct link {
	struct rpma_peer *peer;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel; /* the shared one */
	struct rpma_cq *cq, *rcq;
	bool flush;                          /* the QP has the FLUSH operation */
	struct rpma_conn_private_data pdata; /* what came from the peer; ours to free */
};

/*
 * Takes over id, gives it queues and a QP as cfg says.  On failure id is as before.  INVAL: a
 * shared channel and an SRQ with a queue of its own; NOMEM, PROVIDER.
 */
int link_make(struct rpma_peer *peer, struct rdma_cm_id *id, const struct rpma_conn_cfg *cfg,
	struct link *link);

/* Destroys all of it, the id too.  PROVIDER, and it is gone all the same. */
int link_destroy(struct link *link);

/* Keeps a copy of what an event brought; it stays as it is if that is nothing.  NOMEM. */
int link_keep_private_data(struct link *link, const struct rdma_cm_event *event);

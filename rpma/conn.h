/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections, and what a request hands on to the connection that it becomes. */
#pragma once

#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "rpma/conn_cfg.h"
#include "rpma/cq.h"
#include "rpma/mr.h"

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

struct rpma_conn {
	struct link link;
	struct rdma_event_channel *events;
	struct rpma_mr_local *flush_dst; /* where the reads of flushes go, and the page of it */
	void *flush_page;
	atomic_bool direct_write_to_pmem; /* of the peer */
	atomic_bool pdata_known;          /* link.pdata changes no more */
};

/*
 * A connection of that link, with an event channel to which the id moves.  On failure the link
 * still is the caller's.  NOMEM, PROVIDER.
 */
int conn_new(struct link *link, struct rpma_conn **conn_ptr);
/* Frees it and all it has.  PROVIDER, and it is gone all the same. */
int conn_delete(struct rpma_conn *conn);

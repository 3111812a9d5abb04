/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections. */
#pragma once

#include <stdatomic.h>

#include "rpma/link.h"
#include "rpma/mr.h"

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

/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for connections, ours and those of others. */
#pragma once

#include "rpma/link.h"

struct rpma_conn_req {
	struct link link;
	bool incoming;
};

/*
 * A request of that event, which is acknowledged in any case; on failure the request is rejected
 * and its id destroyed.  INVAL: another event, or as link_make(); NOMEM, PROVIDER.
 */
int conn_req_from_event(struct rpma_peer *peer, struct rdma_cm_event *event,
	const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);

/* SPDX-License-Identifier: BSD-3-Clause */
/* A device and a protection domain on it. */
#pragma once

#include <rdma/rdma_cma.h>

#include "include/weft/rkey.h"
#include "rpma/rpma.h"

struct rpma_peer {
	struct ibv_pd *pd;
	bool odp;          /* on-demand memory serves RC reads and writes */
	bool atomic_write; /* the device has the ATOMIC WRITE operation */
	bool flush;        /* ... and FLUSH, of both types */
	/* What a peer's key allows, NULL: this libibverbs cannot tell. */
	weft_rkey_access_fn rkey_access;
	bool iwarp;
};

/* The sizes and queues of a QP. */
struct peer_qp {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq; /* or NULL */
	uint32_t sq_size, rq_size;
};

/*
 * Makes id's QP; *flush: it has the FLUSH operation.  PROVIDER: the device cannot, or id is on
 * another one.
 */
int peer_make_qp(
	struct rpma_peer *peer, struct rdma_cm_id *id, const struct peer_qp *qp, bool *flush);

/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to a connection's QP. */
#pragma once

#include "rpma/conn.h"

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge; /* of length 0: none */
};

/* Posts a request with RPMA_F_* flags.  PROVIDER. */
int ops_post(struct rpma_conn *conn, struct request *r, int flags, const void *op_context);

/* A transfer between two regions, or of nothing between none.  INVAL: not within them. */
int ops_transfer(struct request *r, const struct rpma_mr_local *local, size_t local_offset,
	const struct rpma_mr_remote *remote, size_t remote_offset, size_t len);

/* Gives the request its SGE, if it has one. */
static inline void ops_attach(struct request *r)
{
	r->wr.sg_list = &r->sge;
	r->wr.num_sge = r->sge.length != 0;
}

/* The IBV_SEND_* of RPMA_F_*. */
static inline unsigned ops_send_flags(int flags)
{
	/* ALWAYS contains ON_ERROR, which every request does by itself. */
	return flags & (RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR) ? IBV_SEND_SIGNALED
										: 0;
}

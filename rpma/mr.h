/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions, ours and the peer's, and ranges of them. */
#pragma once

#include "rpma/peer.h"

struct rpma_mr_local {
	struct ibv_mr *mr;
	uint8_t usage;
};

struct rpma_mr_remote {
	uint64_t addr, size;
	uint32_t rkey;
	uint8_t usage;
};

/*
 * The SGE of [offset, offset+len) of mr; of nothing, if mr is NULL and so are the numbers.  INVAL:
 * not within mr, or more than an SGE can say.
 */
int mr_local_range(const struct rpma_mr_local *mr, size_t offset, size_t len, struct ibv_sge *sge);

/* The same of a remote region: where the range begins for the HCA. */
int mr_remote_range(
	const struct rpma_mr_remote *mr, size_t offset, size_t len, uint64_t *addr, uint32_t *rkey);

/* A receive of that range, in the queue that post() posts to; op_context is its wr_id. */
struct recv {
	struct ibv_recv_wr wr;
	struct ibv_sge sge;
};
int mr_recv(const struct rpma_mr_local *dst, size_t offset, size_t len, const void *op_context,
	struct recv *r);

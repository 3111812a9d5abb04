/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA WRITE and READ. */
#pragma once

#include "hca/exec/work.h"

/* Each executes w; the responder is ready. */
enum step op_write(struct work *w);
enum step op_read(struct work *w);

/* READs, atomics and FLUSHes need resources that both ends agreed on: are there any? */
static inline bool op_has_rd_atomic(const struct work *w)
{
	return w->req->qp->max_rd_atomic && w->resp->qp->max_dest_rd_atomic;
}

/* There are none: the request ends in this, an error of the end that has none. */
enum step op_fail_rd_atomic(struct work *w);

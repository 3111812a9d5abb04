/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushing a QP in error. */
#pragma once

#include "hca/exec/complete.h"

/* In a state in which the send queue is flushed. */
static inline bool sends_flush(const struct end *e)
{
	uint32_t s = end_state(e);

	return s == IBV_QPS_ERR || s == IBV_QPS_SQE;
}

/*
 * Completes what is queued in e's QP, which is in ERR, with WR_FLUSH_ERR.  held: the caller holds
 * e's token.  What somebody else holds at the moment is left to them, by a kick.
 */
void qp_flush(struct exec *x, const struct end *e, bool held);

/*
 * The same for the receive queue alone: after a post_recv in ERR, and for the holder of rq_token
 * that was kicked (its token_drop() said so).  In any state it announces a completion that a
 * dead executor wrote but perhaps did not announce.
 */
void qp_flush_recv(struct exec *x, const struct end *e);

/* Lets go of e's rq_token; does the flush that somebody may have asked for meanwhile. */
void rq_token_drop(struct exec *x, const struct end *e);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The far end of a QP where it is a QP of this machine, in a process whose segment is mapped here:
 * whoever posts executes.  Datagrams, too, whose receivers are found one by one.
 */
#pragma once

#include "hca/run/far.h"

struct peer;

/*
 * Does the queue pair that has the peer's number mean ours?  By the addresses of both paths.  Or is
 * the number not of this fabric?
 */
enum near_meant { NEAR_NOT_SAID, NEAR_MEANT, NEAR_NOT_MEANT, NEAR_ELSEWHERE };

extern const struct far_ops near_ops;

/* Has a look for the other end of qp found that its number is not of this fabric? */
static inline bool near_elsewhere(const struct hca_qp *qp)
{
	return atomic_load_explicit(&qp->meant, memory_order_relaxed) == NEAR_ELSEWHERE;
}

static inline void near_note(struct hca_qp *qp, enum near_meant meant)
{
	atomic_store_explicit(&qp->meant, meant, memory_order_relaxed);
}

/* Makes sure that we can write the eventfds of e's CQs without asking weftd then. */
int near_prepare_channels(struct peer *process, const struct end *e);

/*
 * As the op run_in, by the agent, to whom the peer of qp has handed its requests over
 * (hca/run/handed.h); nothing for a QP whose far end is another's.
 */
void near_run_handed(struct exec *x, struct hca_qp *qp);

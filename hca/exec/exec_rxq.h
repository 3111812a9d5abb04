/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues with several producers (hca/seg/rxq.h), as an executor uses them. */
#pragma once

#include "hca/exec/complete.h"

/*
 * Takes a receive of e's queue with several producers; *pos is its position.  Raises the limit
 * event of an SRQ when it is due.  False: none is posted.
 */
bool exec_rxq_take(struct exec *x, const struct end *e, uint32_t *pos);

/* Gives it back uncompleted: it is the next to be taken. */
void exec_rxq_untake(struct exec *x, const struct end *e, uint32_t pos);

/*
 * Completes the receive at pos, taken from queue rxq of end `at`, for QP e; at is e itself or, for
 * XRC, the SRQ.
 */
void exec_rxq_complete(struct exec *x, const struct end *e, const struct end *at,
	const struct rxq_ref *rxq, uint32_t pos, const struct outcome *o, const struct received *r);

/*
 * What process dead_id had taken of e's own queue goes back, and what it completed is announced
 * (again).  True if there was anything.
 */
bool exec_rxq_recover(struct exec *x, const struct end *e, uint32_t dead_id);

/* True if e's entry describes a queue with several producers (of a UD QP, or an SRQ). */
static inline bool end_owns_rxq(const struct end *e)
{
	return e->rxq.ring.slots && e->rxq.index == e->index;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What waits in a CQ, for its owner. */
#pragma once

#include "hca/obj/cq.h"
#include "hca/obj/srq.h"

/* The ring's ticket at that position, or 0. */
static inline uint64_t cq_peek(const struct hca_cq *cq, uint64_t pos)
{
	return ticket_peek(atomic_load_explicit(&cq->slots, memory_order_relaxed),
		atomic_load_explicit(&cq->log_size, memory_order_relaxed), pos);
}

/* A look without the lock: is there nothing to take? */
static inline bool cq_looks_empty(const struct hca_cq *cq)
{
	uint64_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	return !atomic_load_explicit(&cq->early.left, memory_order_relaxed) && !cq_peek(cq, head);
}

/* Tickets that wait, with the lock held; more may come at any time. */
static inline uint64_t cq_waiting(const struct hca_cq *cq)
{
	uint64_t tail = atomic_load_explicit(&cq->ring->tail, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	return cq->early.n - cq->early.at + ((int64_t)(tail - head) > 0 ? tail - head : 0);
}

/* Does exactly one completion wait?  A look without the lock; *pos: where. */
static inline bool cq_looks_single(const struct hca_cq *cq, uint64_t *pos)
{
	*pos = atomic_load_explicit(&cq->head, memory_order_relaxed);
	return !atomic_load_explicit(&cq->early.left, memory_order_relaxed) && cq_peek(cq, *pos) &&
	       !cq_peek(cq, *pos + 1);
}

/*
 * Takes away every completion of the QP or SRQ of that index that cq (may be NULL) still holds;
 * cq's lock is taken.
 */
void cq_purge(struct hca_cq *cq, uint32_t index);

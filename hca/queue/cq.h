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

/* Copies out what has arrived in qp's slots and payload ring; the receive CQ's lock is held. */
void qp_land(struct hca_qp *qp, uint32_t upto);

/*
 * Takes away every completion of the QP or SRQ of that index that cq (may be NULL) still holds;
 * cq's lock is taken.
 */
void cq_purge(struct hca_cq *cq, uint32_t index);

/* Copies out everything that has arrived for QPs of this PD (before memory of it goes). */
void pd_land_all(struct hca_pd *pd);

/*
 * After a region of this PD left its table: returns when nobody who found it there, to bring what
 * came to its place, is still at it.
 */
void pd_pass_landers(struct hca_pd *pd);

/*
 * Copies len bytes into a receive's buffers.  The keys were checked when the message came;
 * by now the program may be deregistering them, so our own table is asked, not the published one.
 * False: a region has gone, and what belonged there with it.
 */
bool recv_scatter(const struct seg_rqe *r, unsigned sge_max, const uint8_t *from, uint32_t len);

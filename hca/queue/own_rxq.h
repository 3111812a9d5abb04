/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's side of receive queues with several producers (hca/seg/rxq.h is the protocol). */
#pragma once

#include "hca/api/hca.h"
#include "hca/obj/srq.h"
#include "pages/iov.h"

/* Receives posted and not polled yet. */
static inline uint32_t own_rxq_used(const struct hca_rxq *rxq)
{
	return atomic_load_explicit(&rxq->put, memory_order_relaxed) -
	       atomic_load_explicit(&rxq->freed, memory_order_acquire);
}

/* Counts one more, as the only writer. */
static inline void own_rxq_count(_Atomic uint32_t *count)
{
	uint32_t n = atomic_load_explicit(count, memory_order_relaxed);

	atomic_store_explicit(count, n + 1, memory_order_release);
}

/* Allocates slots and buffers for depth receives.  -ENOMEM. */
int own_rxq_alloc(struct seg_rxq_place *place, uint32_t depth, uint32_t max_sge);

/* Gives them back; nobody uses them any more. */
void own_rxq_give_back(const struct seg_rxq_place *place, uint32_t max_sge);

/* Makes rxq the owner's side of the queue that ref describes. */
void own_rxq_init(struct hca_rxq *rxq, const struct rxq_ref *ref, uint32_t depth, uint32_t max_sge);

/* Gives its memory back. */
void own_rxq_free(struct hca_rxq *rxq);

/* Where it is. */
struct seg_rxq_place own_rxq_place(const struct hca_rxq *rxq);

/* Forgets all receives; nobody else uses the queue. */
void own_rxq_reset(struct hca_rxq *rxq);

/* Posts a list as hca_post_recv(); *parked is set if a requester waits for receives. */
int own_rxq_post(
	struct hca_rxq *rxq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, bool *parked);

/*
 * Copies out what the slot of one of its tickets got, before it completes.  Of a UD QP the slots
 * complete as those receives whose bytes they land as, so it is called in the order of tickets.
 */
void own_rxq_land(struct hca_rxq *rxq, uint64_t ticket);

/* Copies out all that has arrived (before memory goes); of a queue without an order. */
void own_rxq_land_all(struct hca_rxq *rxq);

/*
 * Turns a shared ticket of that CQ into a completion; false if it is stale or surplus.  more may
 * be NULL.
 */
bool own_rxq_redeem(
	uint64_t ticket, uint32_t cq_index, struct ibv_wc *wc, struct hca_wc_more *more);

/*
 * True if a shared ticket is of the QP or SRQ of that index, which goes: then its receive is free
 * again.
 */
bool own_rxq_purge(uint64_t ticket, uint32_t index);

/* Writes what a program posted into its slot; num_sge was checked. */
void recv_fill(struct seg_rqe *r, const struct ibv_recv_wr *wr);

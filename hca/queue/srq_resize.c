// SPDX-License-Identifier: BSD-3-Clause
/*
 * A receive queue with several producers gets a larger ring.  While its slots move it is closed:
 * requests that want a receive are tried again.  A slot keeps its position, which names it in
 * tickets and which finds it in a ring of any size.
 */
#include "hca/queue/srq_resize.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "hca/proc/peer.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/queue/own_rxq.h"

enum { NAP_NS = 50 * 1000 };

static uint64_t word_at(const struct hca_rxq *rxq, uint32_t slot)
{
	return atomic_load_explicit(rxq_slot(&rxq->ref.ring, slot), memory_order_acquire);
}

/* The process that has taken a slot and not completed it, or 0; what a dead one took goes back. */
static uint32_t taker(const struct hca_rxq *rxq)
{
	for (uint32_t i = 0; i <= rxq->ref.ring.mask; i++) {
		uint64_t word = word_at(rxq, i);

		if (rxq_state_of(word) != RXQ_TAKEN)
			continue;
		if (!peer_is_dead(rxq_attach_of(word)))
			return rxq_attach_of(word);
		if (rxq_untake(&rxq->ref.ring, i, rxq_attach_of(word)))
			atomic_fetch_add_explicit(
				&rxq->ref.entry->rxq.taken, UINT32_MAX, memory_order_relaxed);
	}
	return 0;
}

/*
 * Nobody uses the ring any more.  The first wait is for those who looked before it was closed,
 * the second for those who have completed a slot but not yet said that it is announced.
 */
static void drain(const struct hca_rxq *rxq)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t start = clock_ns();
	bool told = false;
	uint32_t who;

	quiesce();
	while ((who = taker(rxq))) {
		if (!told && clock_ns() - start > NSEC_PER_SEC) {
			log_line(LOG_LVL_WARN,
				"modify_srq waits for process %u of the fabric, which fills a "
				"receive",
				who);
			told = true;
		}
		nanosleep(&nap, NULL);
	}
	quiesce();
}

static void move_slots(const struct rxq_ref *from, const struct rxq_ref *to)
{
	for (uint32_t i = 0; i <= from->ring.mask; i++) {
		const struct seg_rxq_slot *s = rxq_at(from, i);
		uint32_t pos = atomic_load_explicit(&s->rqe.state, memory_order_relaxed);

		if (rxq_state_of(atomic_load_explicit(&s->rqe.state, memory_order_relaxed)) ==
			RXQ_FREE)
			continue;
		memcpy(rxq_at(to, pos), s, from->ring.stride);
		if (s->rqe.where == RQ_IN_BOUNCE)
			memcpy(rxq_bounce(to, pos), rxq_bounce(from, i), SEG_BOUNCE_BYTES);
	}
}

static int grow(struct hca_rxq *rxq, uint32_t depth)
{
	struct seg_rxq *q = &rxq->ref.entry->rxq;
	uint32_t n = atomic_load_explicit(&q->resizes, memory_order_relaxed) + 2;
	struct seg_rxq_place *place = &q->place[n >> 1 & 1], old = own_rxq_place(rxq);
	const struct view v = proc_view();
	struct rxq_ref now;
	int rc = own_rxq_alloc(place, depth, rxq->max_sge);

	if (rc)
		return rc;
	atomic_store_explicit(&q->resizes, n - 1, memory_order_seq_cst);
	drain(rxq);
	lock_take(&rxq->land);
	now = rxq->ref;
	now.ring.mask = (1u << place->log) - 1;
	now.ring.slots = (uint8_t *)v.seg + place->slots_off + RXQ_STATE_AT;
	now.bounce = (uint8_t *)v.seg + place->bounce_off;
	now.resizes = n;
	move_slots(&rxq->ref, &now);
	rxq->ref = now;
	atomic_store_explicit(&q->resizes, n, memory_order_seq_cst);
	lock_drop(&rxq->land);
	own_rxq_give_back(&old, rxq->max_sge);
	return 0;
}

int own_rxq_resize(struct hca_rxq *rxq, uint32_t depth)
{
	int rc;

	if (depth < own_rxq_used(rxq)) {
		log_refusal("SRQ: more receives wait than max_wr would be");
		return -EINVAL;
	}
	if (depth > rxq->ref.ring.mask + 1) {
		rc = grow(rxq, depth);
		if (rc)
			return rc;
	}
	rxq->depth = depth;
	return 0;
}

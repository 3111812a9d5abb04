/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receives of a UD QP in the order in which they were posted.  Senders take slots in that
 * order and fill them at the same time, so that a later one may be done first; but receives of a
 * QP complete in the order of posting, those of a shared queue alone need not.  What a slot got
 * therefore goes to the oldest receive, whatever was posted into that slot, and nobody waits for
 * a sender that is slow or stopped.
 *
 * Receives are numbered by how many were posted before.  first is the oldest that has not
 * completed, end one past the last that was posted; the lock of landing is held.
 */
#pragma once

#include "hca/obj/srq.h"
#include "hca/seg/seg.h"
#include "hca/seg/view.h"

/* For so many slots.  -ENOMEM. */
int rxq_order_init(struct rxq_order *o, uint32_t slots, uint32_t max_sge);
void rxq_order_free(struct rxq_order *o);

static inline struct seg_rqe *rxq_order_at(const struct rxq_order *o, uint32_t n)
{
	return (struct seg_rqe *)(o->wr + (size_t)(n & o->mask) * o->stride);
}

/*
 * Where receive n goes when it is posted; the lock of posting is held instead.  The word that
 * tells in a slot that it was posted tells here which slot's bytes it has.
 */
static inline struct seg_rqe *rxq_order_new(struct rxq_order *o, uint32_t n)
{
	atomic_store_explicit(&rxq_order_at(o, n)->posted, 0, memory_order_relaxed);
	return rxq_order_at(o, n);
}

/* Does it have room for len bytes?  The second is for any list. */
bool rxq_order_fits_list(const struct seg_rqe *r, uint64_t len);

static inline bool rxq_order_fits(const struct seg_rqe *r, uint64_t len)
{
	return r->num_sge == 1 ? r->near[0].length >= len : rxq_order_fits_list(r, len);
}

/*
 * The receive that gets the len bytes of a slot before it completes, or NULL: all have theirs, or
 * no room for it.
 */
struct seg_rqe *rxq_order_land(
	struct rxq_order *o, uint32_t first, uint32_t end, uint32_t slot, uint64_t len);

/* rxq_order_take() where bytes have landed, or the oldest is too small. */
const struct seg_rqe *rxq_order_choose(
	struct rxq_order *o, uint32_t first, uint32_t end, uint32_t slot, uint64_t len);

/*
 * The receive as which a slot completes, which becomes the first: the one that has its bytes
 * already, else the oldest with room for len, else the oldest.  NULL: there is none.
 */
static inline const struct seg_rqe *rxq_order_take(
	struct rxq_order *o, uint32_t first, uint32_t end, uint32_t slot, uint64_t len)
{
	const struct seg_rqe *r = rxq_order_at(o, first);

	if (__builtin_expect(first == end, 0))
		return NULL;
	if (__builtin_expect(o->landed || !rxq_order_fits(r, len), 0))
		return rxq_order_choose(o, first, end, slot, len);
	return r;
}

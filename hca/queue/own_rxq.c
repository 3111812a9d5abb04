// SPDX-License-Identifier: BSD-3-Clause
/* Receive queues with several producers: shared ones, and that of a UD QP. */
#include "hca/queue/own_rxq.h"

#include <string.h>

#include "hca/api/hca.h"
#include "hca/exec/receive.h"
#include "hca/exec/work.h"
#include "hca/obj/qp.h"
#include "hca/proc/heap.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/queue/land.h"
#include "hca/queue/rxq_order.h"
#include "hca/queue/tm.h"
#include "hca/seg/park.h"

/* seg_rqe.phase, as its owner goes on with it. */
enum { PHASE_BOTH = 1, PHASE_DATA = 2 };

int own_rxq_alloc(struct seg_rxq_place *place, uint32_t depth, uint32_t max_sge)
{
	unsigned log = slots_log_for(depth);
	uint64_t slot_bytes = (uint64_t)rxq_stride_for(max_sge) << log;
	int rc = heap_alloc(slot_bytes, &place->slots_off);

	place->log = log;
	if (rc)
		return rc;
	rc = heap_alloc((uint64_t)SEG_BOUNCE_BYTES << log, &place->bounce_off);
	if (rc)
		heap_free(place->slots_off, slot_bytes);
	return rc;
}

void own_rxq_give_back(const struct seg_rxq_place *place, uint32_t max_sge)
{
	heap_free(place->slots_off, (uint64_t)rxq_stride_for(max_sge) << place->log);
	heap_free(place->bounce_off, (uint64_t)SEG_BOUNCE_BYTES << place->log);
}

void own_rxq_init(struct hca_rxq *rxq, const struct rxq_ref *ref, uint32_t depth, uint32_t max_sge)
{
	rxq->ref = *ref;
	rxq->depth = depth;
	rxq->max_sge = max_sge;
}

/* From our own pointers: what stands in the segment, a peer may have scribbled over. */
struct seg_rxq_place own_rxq_place(const struct hca_rxq *rxq)
{
	const uint8_t *base = (const uint8_t *)proc_seg();

	return (struct seg_rxq_place){
		.slots_off = rxq->ref.ring.slots - RXQ_STATE_AT - base,
		.bounce_off = rxq->ref.bounce - base,
		.log = __builtin_ctz(rxq->ref.ring.mask + 1),
	};
}

void own_rxq_free(struct hca_rxq *rxq)
{
	struct seg_rxq_place place;

	if (!rxq->ref.ring.slots)
		return;
	place = own_rxq_place(rxq);
	own_rxq_give_back(&place, rxq->max_sge);
	rxq_order_free(&rxq->order);
}

void own_rxq_reset(struct hca_rxq *rxq)
{
	struct seg_rxq *q = &rxq->ref.entry->rxq;

	lock_take(&rxq->land);
	for (uint32_t i = 0; i <= rxq->ref.ring.mask; i++)
		rxq_free(&rxq->ref.ring, i);
	atomic_store_explicit(&q->tail, rxq->tail, memory_order_relaxed);
	atomic_store_explicit(&q->head, rxq->tail, memory_order_relaxed);
	atomic_store_explicit(&q->tail_seen, rxq->tail, memory_order_relaxed);
	atomic_store_explicit(&q->taken, atomic_load_explicit(&q->posted, memory_order_relaxed),
		memory_order_relaxed);
	atomic_store_explicit(&q->park, 0, memory_order_release);
	atomic_store_explicit(&rxq->freed, atomic_load_explicit(&rxq->put, memory_order_relaxed),
		memory_order_relaxed);
	rxq->order.landed = 0;
	lock_drop(&rxq->land);
}

void recv_fill(struct seg_rqe *r, const struct ibv_recv_wr *wr)
{
	r->wr_id = wr->wr_id;
	r->num_sge = wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++) {
		struct seg_sge *s = i < RQ_SGE_NEAR ? &r->near[i] : &r->far[i - RQ_SGE_NEAR];

		s->addr = wr->sg_list[i].addr;
		s->length = wr->sg_list[i].length;
		s->lkey = wr->sg_list[i].lkey;
	}
}

static uint32_t put_count(const struct hca_rxq *rxq)
{
	return atomic_load_explicit(&rxq->put, memory_order_acquire);
}

/* With the lock held. */
static int put(struct hca_rxq *rxq, const struct ibv_recv_wr *wr, bool *parked)
{
	struct seg_rxq *q = &rxq->ref.entry->rxq;
	uint32_t n = atomic_load_explicit(&q->posted, memory_order_relaxed);
	uint32_t pos;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rxq->max_sge)
		return -EINVAL;
	if (own_rxq_used(rxq) >= rxq->depth || !rxq_find_free(&rxq->ref.ring, rxq->tail, &pos))
		return -ENOMEM;
	recv_fill(&rxq_at(&rxq->ref, pos)->rqe, wr);
	if (rxq->order.wr)
		recv_fill(rxq_order_new(&rxq->order, put_count(rxq)), wr);
	own_rxq_count(&rxq->put); /* who finds the slot done finds it counted */
	rxq_post(&rxq->ref.ring, pos);
	atomic_store_explicit(&q->posted, n + 1, memory_order_relaxed);
	rxq->tail = pos + 1;
	*parked |= park_publish(&q->tail, pos + 1, &q->park);
	return 0;
}

int own_rxq_post(
	struct hca_rxq *rxq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, bool *parked)
{
	int rc = 0;

	lock_take(&rxq->lock);
	for (; wr && !rc; wr = wr->next) {
		rc = put(rxq, wr, parked);
		if (rc)
			*bad = wr;
	}
	lock_drop(&rxq->lock);
	return rc;
}

static bool copy_out(struct hca_rxq *rxq, uint32_t slot, const struct seg_rqe *r)
{
	const struct seg_rxq_slot *s = rxq_at(&rxq->ref, slot);
	uint32_t len = s->rqe.byte_len, max = rxq->ref.sge_max;

	if (s->rqe.where == RQ_IN_NEAR)
		return recv_scatter(r, max, s->near, len < RXQ_NEAR_BYTES ? len : RXQ_NEAR_BYTES);
	return recv_scatter(r, max, rxq_bounce(&rxq->ref, slot),
		len < SEG_BOUNCE_BYTES ? len : SEG_BOUNCE_BYTES);
}

/* What was posted into the slot has no such memory; of what gets its payload that is not known. */
static bool is_undecided(const struct hca_rxq *rxq, const struct seg_rqe *s)
{
	return rxq->order.wr && s->status == IBV_WC_LOC_PROT_ERR && s->where != RQ_DIRECT;
}

static bool succeeded(const struct seg_rqe *s)
{
	return s->status == IBV_WC_SUCCESS || s->status == IBV_WC_TM_RNDV_INCOMPLETE;
}

static enum ibv_wc_status fits_own(const struct hca_rxq *rxq, const struct seg_rqe *r, uint32_t len)
{
	const struct view own = proc_view();

	return receive_fits(&own, rxq->ref.pd, r, rxq->ref.sge_max, len);
}

/*
 * Gives receive r what the slot got, once, with the land lock held.  It may not be the one that
 * was posted there, which the sender looked at: what r has no room or no memory for is an error.
 */
static void land_one(struct hca_rxq *rxq, uint32_t slot, const struct seg_rqe *r)
{
	struct seg_rqe *s = &rxq_at(&rxq->ref, slot)->rqe;

	if (s->where == RQ_DIRECT)
		return;
	if (is_undecided(rxq, s))
		s->status = fits_own(rxq, r, s->byte_len);
	if (rxq->order.wr && !rxq_order_fits(r, s->byte_len))
		s->status = IBV_WC_LOC_LEN_ERR;
	else if (succeeded(s) && !copy_out(rxq, slot, r))
		s->status = IBV_WC_LOC_PROT_ERR;
	s->where = RQ_DIRECT;
}

static bool is_done(const struct hca_rxq *rxq, uint32_t slot)
{
	return rxq_state_of(atomic_load_explicit(
		       rxq_slot(&rxq->ref.ring, slot), memory_order_acquire)) == RXQ_DONE;
}

/* Did it bring a payload? */
static bool has_payload(const struct hca_rxq *rxq, const struct seg_rxq_slot *s)
{
	return succeeded(&s->rqe) || is_undecided(rxq, &s->rqe);
}

/* Does its payload wait to be copied out? */
static bool waits(const struct hca_rxq *rxq, uint32_t slot)
{
	const struct seg_rxq_slot *s = rxq_at(&rxq->ref, slot);

	return is_done(rxq, slot) && has_payload(rxq, s) && s->rqe.where != RQ_DIRECT;
}

static uint32_t freed_count(const struct hca_rxq *rxq)
{
	return atomic_load_explicit(&rxq->freed, memory_order_relaxed);
}

/* One that waits, before it completes. */
static void land_early(struct hca_rxq *rxq, uint32_t slot)
{
	const struct seg_rqe *s = &rxq_at(&rxq->ref, slot)->rqe, *r = s;

	if (rxq->order.wr)
		r = rxq_order_land(
			&rxq->order, freed_count(rxq), put_count(rxq), slot, s->byte_len);
	if (r)
		land_one(rxq, slot, r);
}

void own_rxq_land(struct hca_rxq *rxq, uint64_t ticket)
{
	uint32_t slot;
	uint64_t word;

	lock_take(&rxq->land);
	slot = ticket_rxq_bits(ticket) & rxq->ref.ring.mask;
	word = atomic_load_explicit(rxq_slot(&rxq->ref.ring, slot), memory_order_acquire);
	if (ticket_of_pos(ticket, word) && waits(rxq, slot))
		land_early(rxq, slot);
	lock_drop(&rxq->land);
}

void own_rxq_land_all(struct hca_rxq *rxq)
{
	lock_take(&rxq->land);
	for (uint32_t i = 0; i <= rxq->ref.ring.mask; i++)
		if (waits(rxq, i))
			land_early(rxq, i);
	lock_drop(&rxq->land);
}

/* The receive as which the slot completes; NULL: none was posted. */
static const struct seg_rqe *receive_of(struct hca_rxq *rxq, uint32_t slot)
{
	const struct seg_rxq_slot *s = rxq_at(&rxq->ref, slot);
	uint32_t len = has_payload(rxq, s) ? s->rqe.byte_len : 0;

	if (!rxq->order.wr)
		return &s->rqe;
	return rxq_order_take(&rxq->order, freed_count(rxq), put_count(rxq), slot, len);
}

static void drop_slot(struct hca_rxq *rxq, uint32_t slot)
{
	rxq_free(&rxq->ref.ring, slot);
	own_rxq_count(&rxq->freed);
}

static void fill_wc(const struct seg_rxq_slot *s, const struct seg_rqe *receive, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof *wc);
	wc->wr_id = receive->wr_id;
	wc->status = s->rqe.status;
	wc->opcode = s->rqe.opcode;
	wc->byte_len = s->rqe.byte_len;
	wc->imm_data = s->rqe.imm;
	wc->qp_num = s->rqe.qpn;
	wc->src_qp = s->rqe.src_qp;
	wc->wc_flags = s->rqe.wc_flags;
	wc->vendor_err = s->rqe.vendor_err;
	wc->sl = s->rqe.sl;
}

/* A rendezvous: that it matched, then that its data is there.  True: the second is to come. */
static bool first_of_two(struct seg_rxq_slot *s, struct ibv_wc *wc)
{
	bool first = s->rqe.phase == PHASE_BOTH;

	wc->wc_flags &= ~(unsigned)(first ? IBV_WC_TM_DATA_VALID : IBV_WC_TM_MATCH);
	s->rqe.phase = PHASE_DATA;
	return first;
}

static void fill_more(
	const struct seg_rxq_slot *s, const struct ibv_wc *wc, struct hca_wc_more *more)
{
	more->stamp_ns = s->stamp_ns;
	if (!(wc->wc_flags & IBV_WC_TM_MATCH))
		return;
	more->tm_tag = s->got_tag;
	more->tm_priv = s->rqe.priv;
}

/* The queue with several producers that the entry describes, NULL if none. */
static struct hca_rxq *rxq_of(uint32_t index)
{
	struct hca_srq *srq = table_srq(index);
	struct hca_qp *qp = srq ? NULL : table_qp(index);

	if (srq)
		return srq->tm && tm_index(srq->tm) == index ? tm_rxq(srq->tm) : &srq->rxq;
	return qp && qp->rxq.ref.ring.slots ? &qp->rxq : NULL;
}

bool own_rxq_redeem(uint64_t ticket, uint32_t cq_index, struct ibv_wc *wc, struct hca_wc_more *more)
{
	struct hca_rxq *rxq = rxq_of(ticket_entry(ticket));
	const struct seg_rqe *r = NULL;
	struct seg_rxq_slot *s;
	uint32_t slot;
	uint64_t word;

	if (!rxq)
		return false;
	lock_take(&rxq->land);
	slot = ticket_rxq_bits(ticket) & rxq->ref.ring.mask;
	s = rxq_at(&rxq->ref, slot);
	/* Another CPU has all three; two of them are written here: to free it, and to post again.
	 */
	prefetch_write(&s->rqe.state);
	prefetch_write(&s->rqe.posted);
	prefetch_read(s->near);
	word = atomic_load_explicit(&s->rqe.state, memory_order_acquire);
	if (rxq_state_of(word) == RXQ_DONE && s->rqe.cq == cq_index && ticket_of_pos(ticket, word))
		r = receive_of(rxq, slot);
	if (r) {
		bool stays;

		if (has_payload(rxq, s))
			land_one(rxq, slot, r);
		fill_wc(s, r, wc);
		stays = s->rqe.phase && first_of_two(s, wc);
		if (more)
			fill_more(s, wc, more);
		if (!stays)
			drop_slot(rxq, slot);
	}
	lock_drop(&rxq->land);
	return r;
}

bool own_rxq_purge(uint64_t ticket, uint32_t index)
{
	struct hca_rxq *rxq = rxq_of(ticket_entry(ticket));
	uint32_t slot;
	bool ours;

	if (!rxq)
		return true; /* of nothing that still is */
	lock_take(&rxq->land);
	slot = ticket_rxq_bits(ticket) & rxq->ref.ring.mask;
	ours = ticket_entry(ticket) == index || rxq_at(&rxq->ref, slot)->rqe.qp == index;
	if (ours && is_done(rxq, slot))
		drop_slot(rxq, slot);
	lock_drop(&rxq->land);
	return ours;
}

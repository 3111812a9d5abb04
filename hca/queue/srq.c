// SPDX-License-Identifier: BSD-3-Clause
/* Receive queues with several producers: shared ones, and that of a UD QP. */
#include "hca/queue/srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/exec/receive.h"
#include "hca/exec/work.h"
#include "hca/obj/pd.h"
#include "hca/obj/qp.h"
#include "hca/proc/heap.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/proc/tables.h"
#include "hca/queue/cq.h"
#include "hca/queue/event.h"
#include "hca/queue/rx_order.h"
#include "hca/queue/srq_resize.h"
#include "hca/queue/tm.h"
#include "hca/run/run.h"
#include "hca/seg/park.h"

/* seg_rqe.phase, as its owner goes on with it. */
enum { PHASE_BOTH = 1, PHASE_DATA = 2 };

/* ---- the queue ---- */

static unsigned log2_up(uint32_t n)
{
	unsigned log = 0;

	while ((1u << log) < n)
		log++;
	return log;
}

int rx_alloc(struct seg_rx_place *place, uint32_t depth, uint32_t max_sge)
{
	unsigned log = log2_up(depth);
	uint64_t slot_bytes = (uint64_t)rx_stride_for(max_sge) << log;
	int rc = heap_alloc(slot_bytes, &place->slots_off);

	place->log = log;
	if (rc)
		return rc;
	rc = heap_alloc((uint64_t)SEG_BOUNCE_BYTES << log, &place->bounce_off);
	if (rc)
		heap_free(place->slots_off, slot_bytes);
	return rc;
}

void rx_give_back(const struct seg_rx_place *place, uint32_t max_sge)
{
	heap_free(place->slots_off, (uint64_t)rx_stride_for(max_sge) << place->log);
	heap_free(place->bounce_off, (uint64_t)SEG_BOUNCE_BYTES << place->log);
}

void rx_init(struct hca_rxq *rx, const struct rxq_ref *ref, uint32_t depth, uint32_t max_sge)
{
	rx->ref = *ref;
	rx->depth = depth;
	rx->max_sge = max_sge;
}

/* From our own pointers: what stands in the segment, a peer may have scribbled over. */
struct seg_rx_place rx_place(const struct hca_rxq *rx)
{
	const uint8_t *base = (const uint8_t *)proc_seg();

	return (struct seg_rx_place){
		.slots_off = rx->ref.ring.slots - RX_STATE_AT - base,
		.bounce_off = rx->ref.bounce - base,
		.log = __builtin_ctz(rx->ref.ring.mask + 1),
	};
}

void rx_free(struct hca_rxq *rx)
{
	struct seg_rx_place place;

	if (!rx->ref.ring.slots)
		return;
	place = rx_place(rx);
	rx_give_back(&place, rx->max_sge);
	rx_order_free(&rx->order);
}

void rx_reset(struct hca_rxq *rx)
{
	struct seg_rxq *q = &rx->ref.entry->rx;

	lock_take(&rx->land);
	for (uint32_t i = 0; i <= rx->ref.ring.mask; i++)
		rxq_free(&rx->ref.ring, i);
	atomic_store_explicit(&q->tail, rx->tail, memory_order_relaxed);
	atomic_store_explicit(&q->head, rx->tail, memory_order_relaxed);
	atomic_store_explicit(&q->tail_seen, rx->tail, memory_order_relaxed);
	atomic_store_explicit(&q->taken, atomic_load_explicit(&q->posted, memory_order_relaxed),
		memory_order_relaxed);
	atomic_store_explicit(&q->park, 0, memory_order_release);
	atomic_store_explicit(&rx->freed, atomic_load_explicit(&rx->put, memory_order_relaxed),
		memory_order_relaxed);
	rx->order.landed = 0;
	lock_drop(&rx->land);
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

static uint32_t put_count(const struct hca_rxq *rx)
{
	return atomic_load_explicit(&rx->put, memory_order_acquire);
}

/* With the lock held. */
static int put(struct hca_rxq *rx, const struct ibv_recv_wr *wr, bool *parked)
{
	struct seg_rxq *q = &rx->ref.entry->rx;
	uint32_t n = atomic_load_explicit(&q->posted, memory_order_relaxed);
	uint32_t pos;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rx->max_sge)
		return -EINVAL;
	if (rx_used(rx) >= rx->depth || !rxq_find_free(&rx->ref.ring, rx->tail, &pos))
		return -ENOMEM;
	recv_fill(&rxq_at(&rx->ref, pos)->rqe, wr);
	if (rx->order.wr)
		recv_fill(rx_order_new(&rx->order, put_count(rx)), wr);
	rx_count(&rx->put); /* who finds the slot done finds it counted */
	rxq_post(&rx->ref.ring, pos);
	atomic_store_explicit(&q->posted, n + 1, memory_order_relaxed);
	rx->tail = pos + 1;
	*parked |= park_publish(&q->tail, pos + 1, &q->park);
	return 0;
}

int rx_post(struct hca_rxq *rx, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, bool *parked)
{
	int rc = 0;

	lock_take(&rx->lock);
	for (; wr && !rc; wr = wr->next) {
		rc = put(rx, wr, parked);
		if (rc)
			*bad = wr;
	}
	lock_drop(&rx->lock);
	return rc;
}

static bool copy_out(struct hca_rxq *rx, uint32_t slot, const struct seg_rqe *r)
{
	const struct seg_rxs *s = rxq_at(&rx->ref, slot);
	uint32_t len = s->rqe.byte_len, max = rx->ref.sge_max;

	if (s->rqe.where == RQ_IN_NEAR)
		return recv_scatter(r, max, s->near, len < RX_NEAR_BYTES ? len : RX_NEAR_BYTES);
	return recv_scatter(r, max, rxq_bounce(&rx->ref, slot),
		len < SEG_BOUNCE_BYTES ? len : SEG_BOUNCE_BYTES);
}

/* What was posted into the slot has no such memory; of what gets its payload that is not known. */
static bool is_undecided(const struct hca_rxq *rx, const struct seg_rqe *s)
{
	return rx->order.wr && s->status == IBV_WC_LOC_PROT_ERR && s->where != RQ_DIRECT;
}

static bool succeeded(const struct seg_rqe *s)
{
	return s->status == IBV_WC_SUCCESS || s->status == IBV_WC_TM_RNDV_INCOMPLETE;
}

static enum ibv_wc_status fits_own(const struct hca_rxq *rx, const struct seg_rqe *r, uint32_t len)
{
	const struct view own = proc_view();

	return receive_fits(&own, rx->ref.pd, r, rx->ref.sge_max, len);
}

/*
 * Gives receive r what the slot got, once, with the land lock held.  It may not be the one that
 * was posted there, which the sender looked at: what r has no room or no memory for is an error.
 */
static void land_one(struct hca_rxq *rx, uint32_t slot, const struct seg_rqe *r)
{
	struct seg_rqe *s = &rxq_at(&rx->ref, slot)->rqe;

	if (s->where == RQ_DIRECT)
		return;
	if (is_undecided(rx, s))
		s->status = fits_own(rx, r, s->byte_len);
	if (rx->order.wr && !rx_order_fits(r, s->byte_len))
		s->status = IBV_WC_LOC_LEN_ERR;
	else if (succeeded(s) && !copy_out(rx, slot, r))
		s->status = IBV_WC_LOC_PROT_ERR;
	s->where = RQ_DIRECT;
}

static bool is_done(const struct hca_rxq *rx, uint32_t slot)
{
	return rxq_state_of(atomic_load_explicit(
		       rxq_slot(&rx->ref.ring, slot), memory_order_acquire)) == RXQ_DONE;
}

/* Did it bring a payload? */
static bool has_payload(const struct hca_rxq *rx, const struct seg_rxs *s)
{
	return succeeded(&s->rqe) || is_undecided(rx, &s->rqe);
}

/* Does its payload wait to be copied out? */
static bool waits(const struct hca_rxq *rx, uint32_t slot)
{
	const struct seg_rxs *s = rxq_at(&rx->ref, slot);

	return is_done(rx, slot) && has_payload(rx, s) && s->rqe.where != RQ_DIRECT;
}

static uint32_t freed_count(const struct hca_rxq *rx)
{
	return atomic_load_explicit(&rx->freed, memory_order_relaxed);
}

/* One that waits, before it completes. */
static void land_early(struct hca_rxq *rx, uint32_t slot)
{
	const struct seg_rqe *s = &rxq_at(&rx->ref, slot)->rqe, *r = s;

	if (rx->order.wr)
		r = rx_order_land(&rx->order, freed_count(rx), put_count(rx), slot, s->byte_len);
	if (r)
		land_one(rx, slot, r);
}

void rx_land(struct hca_rxq *rx, uint64_t ticket)
{
	uint32_t slot;
	uint64_t word;

	lock_take(&rx->land);
	slot = ticket_shared_bits(ticket) & rx->ref.ring.mask;
	word = atomic_load_explicit(rxq_slot(&rx->ref.ring, slot), memory_order_acquire);
	if (ticket_of_pos(ticket, word) && waits(rx, slot))
		land_early(rx, slot);
	lock_drop(&rx->land);
}

void rx_land_all(struct hca_rxq *rx)
{
	lock_take(&rx->land);
	for (uint32_t i = 0; i <= rx->ref.ring.mask; i++)
		if (waits(rx, i))
			land_early(rx, i);
	lock_drop(&rx->land);
}

/* The receive as which the slot completes; NULL: none was posted. */
static const struct seg_rqe *receive_of(struct hca_rxq *rx, uint32_t slot)
{
	const struct seg_rxs *s = rxq_at(&rx->ref, slot);
	uint32_t len = has_payload(rx, s) ? s->rqe.byte_len : 0;

	if (!rx->order.wr)
		return &s->rqe;
	return rx_order_take(&rx->order, freed_count(rx), put_count(rx), slot, len);
}

static void drop_slot(struct hca_rxq *rx, uint32_t slot)
{
	rxq_free(&rx->ref.ring, slot);
	rx_count(&rx->freed);
}

static void fill_wc(const struct seg_rxs *s, const struct seg_rqe *receive, struct ibv_wc *wc)
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
static bool first_of_two(struct seg_rxs *s, struct ibv_wc *wc)
{
	bool first = s->rqe.phase == PHASE_BOTH;

	wc->wc_flags &= ~(unsigned)(first ? IBV_WC_TM_DATA_VALID : IBV_WC_TM_MATCH);
	s->rqe.phase = PHASE_DATA;
	return first;
}

static void fill_more(const struct seg_rxs *s, const struct ibv_wc *wc, struct hca_wc_more *more)
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
		return srq->tm && tm_index(srq->tm) == index ? tm_rxq(srq->tm) : &srq->rx;
	return qp && qp->rx.ref.ring.slots ? &qp->rx : NULL;
}

bool rx_redeem(uint64_t ticket, uint32_t cq_index, struct ibv_wc *wc, struct hca_wc_more *more)
{
	struct hca_rxq *rx = rxq_of(ticket_entry(ticket));
	const struct seg_rqe *r = NULL;
	struct seg_rxs *s;
	uint32_t slot;
	uint64_t word;

	if (!rx)
		return false;
	lock_take(&rx->land);
	slot = ticket_shared_bits(ticket) & rx->ref.ring.mask;
	s = rxq_at(&rx->ref, slot);
	/* Another CPU has all three; two of them are written here: to free it, and to post again.
	 */
	prefetch_write(&s->rqe.state);
	prefetch_write(&s->rqe.posted);
	prefetch_read(s->near);
	word = atomic_load_explicit(&s->rqe.state, memory_order_acquire);
	if (rxq_state_of(word) == RXQ_DONE && s->rqe.cq == cq_index && ticket_of_pos(ticket, word))
		r = receive_of(rx, slot);
	if (r) {
		bool stays;

		if (has_payload(rx, s))
			land_one(rx, slot, r);
		fill_wc(s, r, wc);
		stays = s->rqe.phase && first_of_two(s, wc);
		if (more)
			fill_more(s, wc, more);
		if (!stays)
			drop_slot(rx, slot);
	}
	lock_drop(&rx->land);
	return r;
}

bool rx_purge(uint64_t ticket, uint32_t index)
{
	struct hca_rxq *rx = rxq_of(ticket_entry(ticket));
	uint32_t slot;
	bool ours;

	if (!rx)
		return true; /* of nothing that still is */
	lock_take(&rx->land);
	slot = ticket_shared_bits(ticket) & rx->ref.ring.mask;
	ours = ticket_entry(ticket) == index || rxq_at(&rx->ref, slot)->rqe.qp == index;
	if (ours && is_done(rx, slot))
		drop_slot(rx, slot);
	lock_drop(&rx->land);
	return ours;
}

/* ---- shared receive queues ---- */

static int refuse(int err, const char *why)
{
	log_line(LOG_LVL_INFO, "SRQ: %s", why);
	return err;
}

static int check_attr(const struct ibv_srq_attr *a)
{
	if (!a->max_wr || a->max_wr > HCA_MAX_WR || a->max_sge > HCA_MAX_SGE)
		return refuse(-EINVAL, "a capacity is 0 or above the device's limits");
	return 0;
}

struct srq_made {
	const struct ibv_srq_attr *attr;
	struct seg_rx_place place;
};

static void describe(
	const struct hca_srq *srq, struct seg_qp *s, uint32_t srqn, const struct srq_made *made)
{
	uint32_t gen = atomic_load_explicit(&s->state, memory_order_relaxed) >> QPS_GEN_SHIFT;

	memset((char *)s + sizeof s->state, 0, sizeof *s - sizeof s->state);
	s->qpn = srqn;
	s->pd = srq->pd->handle;
	s->type = srq->tm ? SEG_TYPE_TM_SRQ : srq->xrcd ? SEG_TYPE_XRC_SRQ : SEG_TYPE_SRQ;
	s->srq = srq->tm ? tm_index(srq->tm) : 0;
	s->xrcd = srq->xrcd ? srq->xrcd->id : 0;
	s->send_cq = SEG_NONE;
	s->recv_cq = srq->cq ? srq->cq->index : SEG_NONE;
	s->rq_log = 0xff;
	s->stamps = srq->cq && srq->cq->stamps ? STAMP_RECV : 0;
	s->rx.place[0] = made->place;
	s->rx.stride = rx_stride_for(made->attr->max_sge);
	atomic_store_explicit(&s->state, (gen + 1) << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RESET,
		memory_order_release);
}

static int build(struct hca_srq *srq, const struct ibv_srq_attr *attr)
{
	const struct view v = proc_view();
	struct srq_made made = {.attr = attr};
	uint32_t srqn;
	int index, rc = rx_alloc(&made.place, attr->max_wr, attr->max_sge);

	if (rc)
		return rc;
	index = table_add_srq(srq, &srqn);
	if (index < 0) {
		rx_give_back(&made.place, attr->max_sge);
		return index;
	}
	describe(srq, &v.seg->qp[index], srqn, &made);
	rc = end_init(&srq->me, &v, index);
	if (rc) {
		atomic_store_explicit(&v.seg->qp[index].state, 0, memory_order_release);
		table_del_qp(index);
		rx_give_back(&made.place, attr->max_sge);
		return rc;
	}
	rx_init(&srq->rx, &srq->me.rx, attr->max_wr, attr->max_sge);
	return 0;
}

static void enlist(struct hca_srq *srq)
{
	struct hca_pd *pd = srq->pd;

	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	if (srq->cq)
		atomic_fetch_add_explicit(&srq->cq->users, 1, memory_order_relaxed);
	if (srq->xrcd)
		atomic_fetch_add_explicit(&srq->xrcd->users, 1, memory_order_relaxed);
	lock_take(&pd->lock);
	srq->next = pd->srqs;
	srq->link = &pd->srqs;
	if (srq->next)
		srq->next->link = &srq->next;
	pd->srqs = srq;
	lock_drop(&pd->lock);
}

static void delist(struct hca_srq *srq)
{
	struct hca_pd *pd = srq->pd;

	lock_take(&pd->lock);
	*srq->link = srq->next;
	if (srq->next)
		srq->next->link = srq->link;
	lock_drop(&pd->lock);
	atomic_fetch_sub_explicit(&pd->users, 1, memory_order_release);
	if (srq->cq)
		atomic_fetch_sub_explicit(&srq->cq->users, 1, memory_order_release);
	if (srq->xrcd)
		atomic_fetch_sub_explicit(&srq->xrcd->users, 1, memory_order_release);
}

static int check_tm(const struct ibv_tm_cap *tm)
{
	if (!tm->max_num_tags || tm->max_num_tags > HCA_MAX_TAGS || !tm->max_ops ||
		tm->max_ops > HCA_MAX_TAG_OPS)
		return refuse(
			-EINVAL, "room for tags or their operations is 0 or above the limits");
	return 0;
}

int hca_srq_create(struct hca_pd *pd, struct ibv_srq_attr *attr, const struct hca_srq_parts *parts,
	void *cookie, struct hca_srq **out)
{
	struct hca_xrcd *xrcd = parts->xrcd;
	struct hca_cq *cq = parts->cq;
	int rc = check_attr(attr);
	struct hca_srq *srq;

	if (!rc && (xrcd || parts->tm) != !!cq)
		rc = refuse(-EINVAL, "an XRC SRQ needs a domain and a CQ, others have neither");
	if (!rc && parts->tm)
		rc = check_tm(parts->tm);
	if (!rc)
		rc = proc_attach(NULL);
	if (rc)
		return rc;
	if (pd->epoch != proc_epoch() || (xrcd && xrcd->epoch != proc_epoch()) ||
		(cq && cq->epoch != proc_epoch()))
		return -EINVAL; /* objects of the process we were forked from */
	srq = calloc(1, sizeof *srq);
	if (!srq)
		return -ENOMEM;
	srq->epoch = proc_epoch();
	srq->pd = pd;
	srq->xrcd = xrcd;
	srq->cq = cq;
	srq->cookie = cookie;
	attr->max_sge = attr->max_sge ? attr->max_sge : 1;
	rc = parts->tm ? tm_create(srq, parts->tm, &srq->tm) : 0;
	if (!rc)
		rc = build(srq, attr);
	if (rc) {
		if (srq->tm) {
			tm_close(srq->tm);
			tm_free(srq->tm, NULL);
		}
		free(srq);
		return rc;
	}
	enlist(srq);
	*out = srq;
	return 0;
}

int hca_srq_destroy(struct hca_srq *srq)
{
	if (srq->epoch == proc_epoch()) {
		if (atomic_load_explicit(&srq->users, memory_order_acquire))
			return -EBUSY;
		atomic_store_explicit(&srq->me.qp->state, (srq->me.gen + 1) << QPS_GEN_SHIFT,
			memory_order_seq_cst);
		if (srq->tm)
			tm_close(srq->tm);
		quiesce_runs();
		cq_purge(srq->cq, srq->me.index);
		if (srq->tm)
			tm_free(srq->tm, srq->cq);
		delist(srq);
		qp_forget_events(srq->me.index);
		table_del_qp(srq->me.index);
		rx_free(&srq->rx);
	}
	free(srq);
	return 0;
}

uint32_t hca_srq_num(const struct hca_srq *srq)
{
	return srq->me.qpn;
}

/* Fewer receives than the new limit: the event comes at once. */
static void check_limit(struct hca_srq *srq)
{
	struct seg_rxq *q = &srq->me.rx.entry->rx;
	uint32_t limit = atomic_load_explicit(&q->limit, memory_order_seq_cst);
	uint32_t left = atomic_load_explicit(&q->posted, memory_order_relaxed) -
			atomic_load_explicit(&q->taken, memory_order_seq_cst);
	struct exec *x = exec_get();

	if (x && limit && left < limit &&
		atomic_compare_exchange_strong_explicit(
			&q->limit, &limit, 0, memory_order_seq_cst, memory_order_relaxed))
		raise_qp_event(x, &srq->me, IBV_EVENT_SRQ_LIMIT_REACHED);
	exec_put(x);
}

/* Everything is checked before anything is changed; with the lock of posting held. */
static int modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	_Atomic uint32_t *now = &srq->me.rx.entry->rx.limit;
	uint32_t limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit
					      : atomic_load_explicit(now, memory_order_relaxed);
	uint32_t depth = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rx.depth;
	int rc;

	if (!depth || depth > HCA_MAX_WR)
		return refuse(-EINVAL, "max_wr is 0 or above the device's limit");
	if (limit > depth)
		return refuse(-EINVAL, "srq_limit is above max_wr");
	if (mask & IBV_SRQ_MAX_WR) {
		rc = rx_resize(&srq->rx, depth);
		if (rc)
			return rc;
	}
	if (mask & IBV_SRQ_LIMIT)
		atomic_store_explicit(now, limit, memory_order_seq_cst);
	return 0;
}

int hca_srq_modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	int rc;

	if (srq->epoch != proc_epoch() || mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return -EINVAL;
	lock_take(&srq->rx.lock);
	rc = modify(srq, attr, mask);
	lock_drop(&srq->rx.lock);
	if (!rc && mask & IBV_SRQ_LIMIT)
		check_limit(srq);
	return rc;
}

void hca_srq_query(struct hca_srq *srq, struct ibv_srq_attr *attr)
{
	lock_take(&srq->rx.lock);
	attr->max_wr = srq->rx.depth;
	lock_drop(&srq->rx.lock);
	attr->max_sge = srq->rx.max_sge;
	attr->srq_limit = atomic_load_explicit(&srq->me.rx.entry->rx.limit, memory_order_relaxed);
}

/* Requesters wait for receives: serves those whose QPs are ours. */
static void serve_parked(struct lock *lock, struct hca_qp **list)
{
	lock_take(lock);
	for (struct hca_qp *qp = *list; qp; qp = qp->shared_next)
		if (atomic_load_explicit(&qp->me.qp->park, memory_order_seq_cst) &&
			atomic_exchange_explicit(&qp->me.qp->park, 0, memory_order_seq_cst))
			qp_run_in(qp);
	lock_drop(lock);
}

void srq_serve(struct hca_srq *srq)
{
	_Atomic uint32_t *park = &srq->me.rx.entry->rx.park;

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(park, memory_order_seq_cst) &&
		atomic_exchange_explicit(park, 0, memory_order_seq_cst))
		serve_parked(&srq->lock, &srq->qps);
}

int hca_post_srq_recv(struct hca_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	bool parked = false;
	int rc;

	if (srq->epoch != proc_epoch()) {
		*bad = wr;
		return -EINVAL;
	}
	rc = rx_post(&srq->rx, wr, bad, &parked);
	if (parked && srq->xrcd)
		serve_parked(&srq->xrcd->lock, &srq->xrcd->qps);
	else if (parked)
		serve_parked(&srq->lock, &srq->qps);
	return rc;
}

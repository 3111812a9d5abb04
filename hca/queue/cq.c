// SPDX-License-Identifier: BSD-3-Clause
/* Completion queues: the consumer side of the ticket ring. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hca/api/hca.h"
#include "hca/exec/resolve.h"
#include "hca/obj/mr.h"
#include "hca/obj/pd.h"
#include "hca/obj/qp.h"
#include "hca/proc/heap.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/proc/tables.h"
#include "hca/queue/channel.h"
#include "hca/queue/cq.h"
#include "hca/queue/explain.h"
#include "hca/queue/srq.h"
#include "hca/queue/tm.h"
#include "hca/run/agent.h"
#include "hca/run/own_bytes.h"
#include "hca/run/progress.h"
#include "hca/seg/arm.h"
#include "hca/seg/opcode.h"

enum { IDLE_POLLS_PER_YIELD = 1024, IDLE_POLLS_PER_LOOK = 16, MIN_RING_LOG = 8 };

/* A ring of tickets, before the CQ uses it. */
struct new_ring {
	uint64_t off, bytes;
	uint32_t log_size, limit;
};

static int alloc_ring(struct new_ring *r, int cqe)
{
	r->limit = cqe;
	r->log_size = MIN_RING_LOG;
	while ((1 << r->log_size) < cqe + CQ_SURPLUS_MAX)
		r->log_size++;
	r->bytes = 8ull << r->log_size;
	return heap_alloc(r->bytes, &r->off);
}

/* Describes it in one of the two places of the segment's entry. */
static void place_ring(struct seg_cq *s, uint32_t place, const struct new_ring *r)
{
	struct ticket_ring *t = &s->ring[place];

	s->place[place].off = r->off;
	s->place[place].log_size = r->log_size;
	s->place[place].limit = r->limit;
	atomic_store_explicit(&t->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&t->head, 0, memory_order_relaxed);
	atomic_store_explicit(&t->head_seen, 0, memory_order_relaxed);
}

/* From here on tickets are taken out of that ring. */
static void use_ring(struct hca_cq *cq, uint32_t place, const struct new_ring *r)
{
	_Atomic uint64_t *slots = (_Atomic uint64_t *)((char *)proc_seg() + r->off);

	atomic_store_explicit(&cq->log_size, r->log_size, memory_order_relaxed);
	atomic_store_explicit(&cq->slots, slots, memory_order_relaxed);
	atomic_store_explicit(&cq->head, 0, memory_order_relaxed);
	cq->ring = &cq->s->ring[place];
	cq->ring_bytes = r->bytes;
	cq->solicited = (struct cq_marks){.looked = 0};
	atomic_store_explicit(&cq->told_alone, 0, memory_order_relaxed);
}

static uint64_t ring_offset(const struct hca_cq *cq)
{
	_Atomic uint64_t *slots = atomic_load_explicit(&cq->slots, memory_order_relaxed);

	return (uint64_t)((char *)slots - (char *)proc_seg());
}

static void describe(struct hca_cq *cq, const struct new_ring *r)
{
	struct seg_cq *s = &proc_seg()->cq[cq->index];
	uint32_t live = atomic_load_explicit(&s->live, memory_order_relaxed);
	uint32_t place = atomic_load_explicit(&s->resizes, memory_order_relaxed) & 1;

	place_ring(s, place, r);
	s->channel = cq->channel ? cq->channel->id : 0;
	s->ignores_overrun = cq->ignores_overrun;
	atomic_store_explicit(&s->arm, ARM_IDLE, memory_order_relaxed);
	/* Entries that an earlier CQ of this index has left speak of lower numbers. */
	cq->fired_seen = atomic_load_explicit(&s->fired, memory_order_relaxed);
	atomic_store_explicit(&s->told, cq->fired_seen, memory_order_relaxed);
	atomic_store_explicit(&s->failed, 0, memory_order_relaxed);
	atomic_store_explicit(&s->events, 0, memory_order_relaxed);
	atomic_store_explicit(&s->surplus, 0, memory_order_relaxed);
	atomic_store_explicit(&s->moderation, 0, memory_order_relaxed);
	atomic_store_explicit(&s->held, 0, memory_order_relaxed);
	atomic_store_explicit(&s->due, 0, memory_order_relaxed);
	atomic_store_explicit(&s->live, (live | 1) + (live & 1 ? 2 : 0), memory_order_release);
	cq->s = s;
	use_ring(cq, place, r);
	atomic_fetch_add_explicit(&proc_seg()->hdr.n_cq, 1, memory_order_relaxed);
}

static int build(struct hca_cq *cq, int cqe)
{
	struct new_ring r;
	int index, rc = alloc_ring(&r, cqe);

	if (rc)
		return rc;
	index = table_add_cq(cq);
	if (index < 0) {
		heap_free(r.off, r.bytes);
		return index;
	}
	cq->index = index;
	describe(cq, &r);
	return 0;
}

int hca_cq_create(
	int *cqe, struct hca_channel *channel, unsigned flags, void *cookie, struct hca_cq **out)
{
	struct hca_cq *cq;
	int rc;

	if (*cqe < 1 || *cqe > HCA_MAX_CQE)
		return -EINVAL;
	rc = proc_attach(NULL);
	if (rc)
		return rc;
	if (channel && channel->epoch != proc_epoch())
		return -EINVAL; /* of the process we were forked from */
	cq = calloc(1, sizeof *cq);
	if (!cq)
		return -ENOMEM;
	cq->epoch = proc_epoch();
	cq->cookie = cookie;
	cq->channel = channel;
	cq->stamps = flags & HCA_CQ_STAMPS;
	cq->ignores_overrun = flags & HCA_CQ_IGNORE_OVERRUN;
	rc = build(cq, *cqe);
	if (rc) {
		free(cq);
		return rc;
	}
	if (channel)
		channel_add_cq(channel, cq);
	*out = cq;
	return 0;
}

int hca_cq_close(struct hca_cq *cq)
{
	if (cq->epoch == proc_epoch() && atomic_load_explicit(&cq->users, memory_order_acquire))
		return -EBUSY;
	if (cq->channel)
		channel_del_cq(cq->channel, cq);
	return 0;
}

void hca_cq_free(struct hca_cq *cq)
{
	if (cq->epoch == proc_epoch()) {
		atomic_fetch_and_explicit(&cq->s->live, ~1u, memory_order_release);
		heap_free(ring_offset(cq), cq->ring_bytes);
		atomic_fetch_sub_explicit(&proc_seg()->hdr.n_cq, 1, memory_order_relaxed);
		table_del_cq(cq->index);
	}
	free(cq->early.t);
	free(cq);
}

/* ---- copying out what arrived in slots and payload rings ---- */

/*
 * The region of the first len bytes of an SGE; NULL: it has no such memory.  Checked when the
 * message came; again, for a peer can scribble over our segment.
 */
static struct hca_mr *sge_region(const struct seg_sge *s, uint64_t len)
{
	struct hca_mr *mr = table_mr(s->lkey >> KEY_VARIANT_BITS);
	uint64_t off;

	if (!mr || mr->key != s->lkey)
		return NULL;
	off = s->addr - mr->iova;
	if (off <= mr->length && len <= mr->length - off)
		return mr;
	return mr->kind->swallows ? mr : NULL;
}

/* Puts len bytes where an SGE, whose region is mr, says.  False: that memory refused them. */
static bool put_bytes(struct hca_mr *mr, const struct seg_sge *s, const uint8_t *from, uint64_t len)
{
	uint64_t off = s->addr - mr->iova;

	if (__builtin_expect(mr->kind->io != NULL, 0))
		return !len || !own_write(mr, mr->addr + off, from, len);
	memcpy(mr->kind->swallows ? mr->of : (void *)(uintptr_t)(mr->addr + off), from, len);
	return true;
}

/*
 * Does all of that, for the first len bytes of a receive; from NULL: only looks whether its regions
 * are there.  An SGE of no length needs no key.
 */
static bool put_list(const struct seg_rqe *r, unsigned sge_max, const uint8_t *from, uint64_t len)
{
	unsigned n = r->num_sge < sge_max ? r->num_sge : sge_max;

	for (unsigned i = 0; i < n && i < HCA_MAX_SGE && len; i++) {
		const struct seg_sge s = i < RQ_SGE_NEAR ? r->near[i] : r->far[i - RQ_SGE_NEAR];
		uint64_t step = s.length < len ? s.length : len;
		struct hca_mr *mr = step ? sge_region(&s, step) : NULL;

		if (step && (!mr || (from && !put_bytes(mr, &s, from, step))))
			return false;
		if (from)
			from += step;
		len -= step;
	}
	return true;
}

bool recv_scatter(const struct seg_rqe *r, unsigned sge_max, const uint8_t *from, uint32_t len)
{
	const struct seg_sge s = r->near[0];

	if (r->num_sge == 1 && sge_max && len <= s.length) {
		struct hca_mr *mr = sge_region(&s, len);

		return mr ? put_bytes(mr, &s, from, len) : !len;
	}
	return put_list(r, sge_max, NULL, len) && put_list(r, sge_max, from, len);
}

static void land_one(struct hca_qp *qp, uint32_t pos)
{
	struct seg_rqe *r = end_rqe(&qp->me, pos);
	uint32_t len = r->byte_len, max = qp->me.rq_sge_max;

	if (r->where == RQ_DIRECT)
		return;
	if (r->where == RQ_IN_SLOT) {
		recv_scatter(r, max, r->payload, len < RQ_INLINE_MAX ? len : RQ_INLINE_MAX);
		return;
	}
	if (len <= SEG_RING_BYTES - r->ring_pos % SEG_RING_BYTES)
		recv_scatter(r, max, qp->me.ring + r->ring_pos % SEG_RING_BYTES, len);
	atomic_store_explicit(&qp->me.qp->ring_head,
		r->ring_pos + ((len + CACHE_LINE - 1) & ~(CACHE_LINE - 1u)), memory_order_release);
}

void qp_land(struct hca_qp *qp, uint32_t upto)
{
	for (; qp->rq_landed != upto; qp->rq_landed++)
		land_one(qp, qp->rq_landed);
}

/* ---- polling ---- */

static void wc_common(struct ibv_wc *wc, const struct hca_qp *qp)
{
	memset(wc, 0, sizeof *wc);
	wc->qp_num = qp->me.qpn;
}

/* Copies the oldest completion of the send queue out; more may be NULL. */
static bool take_send(struct hca_qp *qp, struct ibv_wc *wc, struct hca_wc_more *more)
{
	uint32_t pos = atomic_load_explicit(&qp->sq_poll, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&qp->me.qp->sq_tail, memory_order_acquire);
	const struct seg_wqe *w;

	for (uint32_t n = 0;; n++, pos++) {
		if (pos == tail || n > qp->me.sq_mask)
			return false;
		w = end_wqe(&qp->me, pos);
		if (atomic_load_explicit(&w->done, memory_order_acquire) == pos + 1)
			break;
	}
	wc_common(wc, qp);
	wc->wr_id = w->wr_id;
	wc->status = w->status;
	wc->opcode = op_of(w->opcode)->send_wc;
	wc->byte_len = w->byte_len;
	wc->vendor_err = w->vendor_err;
	if (more && qp->me.stamps & STAMP_SEND)
		more->stamp_ns =
			atomic_load_explicit(end_wqe_stamp(&qp->me, pos), memory_order_relaxed);
	if (__builtin_expect(wc->status != IBV_WC_SUCCESS, 0))
		explain_send(qp, w);
	atomic_store_explicit(&qp->sq_poll, pos + 1, memory_order_release);
	return true;
}

static bool take_recv(struct hca_qp *qp, struct ibv_wc *wc, struct hca_wc_more *more)
{
	uint32_t pos = atomic_load_explicit(&qp->rq_poll, memory_order_relaxed);
	const struct seg_rqe *r = end_rqe(&qp->me, pos);

	prefetch_write(&r->posted); /* a peer read it last; it is likely to be posted again */
	if (atomic_load_explicit(&r->done, memory_order_acquire) != pos + 1)
		return false;
	if (qp->rq_landed == pos)
		qp_land(qp, pos + 1);
	wc_common(wc, qp);
	wc->wr_id = r->wr_id;
	wc->status = r->status;
	wc->opcode = r->opcode;
	wc->byte_len = r->byte_len;
	wc->imm_data = r->imm;
	wc->src_qp = r->src_qp;
	wc->wc_flags = r->wc_flags;
	wc->vendor_err = r->vendor_err;
	if (more && qp->me.stamps & STAMP_RECV)
		more->stamp_ns =
			atomic_load_explicit(end_rqe_stamp(&qp->me, pos), memory_order_relaxed);
	if (__builtin_expect(wc->status != IBV_WC_SUCCESS, 0))
		explain_recv(qp, wc);
	atomic_store_explicit(&qp->rq_poll, pos + 1, memory_order_release);
	return true;
}

/* A ticket without a completion: one less of those that were pushed again. */
static void drop_surplus(struct hca_cq *cq)
{
	uint32_t n = atomic_load_explicit(&cq->s->surplus, memory_order_relaxed);

	while (n && !atomic_compare_exchange_weak_explicit(
			    &cq->s->surplus, &n, n - 1, memory_order_relaxed, memory_order_relaxed))
		;
}

/* A message with a tag that none expected. */
static void note_tagged(uint64_t ticket, struct ibv_wc *wc)
{
	struct hca_srq *srq = table_srq(ticket_entry(ticket));

	if (srq && !(wc->wc_flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)))
		tm_note_unexpected(srq->tm, &wc->wc_flags);
}

/* The ticket of an operation on a list of tags, or a stale one. */
static bool take_tag_op(uint64_t ticket, struct ibv_wc *wc)
{
	struct hca_srq *srq = table_srq(ticket_qp(ticket));

	return srq && srq->tm && tm_take_op(srq->tm, wc);
}

/* A UD QP whose receive turns out to be at fault goes to ERR, as if its sender had seen it. */
static void break_qp(struct hca_qp *qp, enum ibv_wc_status status)
{
	struct exec *x;

	if (!qp || (status != IBV_WC_LOC_PROT_ERR && status != IBV_WC_LOC_LEN_ERR) ||
		!qp_set_error(&qp->me))
		return;
	x = exec_get();
	if (!x)
		return;
	slot_enter(x->slot, qp->me.view.attach, qp->me.view.attach);
	qp_flush(x, &qp->me, false);
	slot_leave(x->slot);
	exec_put(x);
}

/* Turns a ticket into a completion; false if it is stale or surplus. */
static bool redeem(struct hca_cq *cq, uint64_t ticket, struct ibv_wc *wc, struct hca_wc_more *more)
{
	struct hca_qp *qp;

	if (ticket_is_shared(ticket)) {
		if (rx_redeem(ticket, cq->index, wc, more)) {
			if (wc->opcode == IBV_WC_TM_RECV)
				note_tagged(ticket, wc);
			if (wc->status != IBV_WC_SUCCESS) {
				break_qp(table_qp(ticket_entry(ticket)), wc->status);
				explain_shared(wc);
			}
			return true;
		}
		drop_surplus(cq);
		return false;
	}
	qp = table_qp(ticket_qp(ticket));
	if (!qp)
		return take_tag_op(ticket, wc);
	if (ticket_gen(ticket) != (qp->me.gen & TICKET_GEN_MASK))
		return false;
#if defined(__SANITIZE_THREAD__)
	/*
	 * A request that a thread of ours began and a peer ended: the token went from one to the
	 * other.  ThreadSanitizer does not see the peer's half of that.
	 */
	(void)atomic_load_explicit(&qp->me.qp->token, memory_order_acquire);
#endif
	if (ticket_is_recv(ticket) ? take_recv(qp, wc, more) : take_send(qp, wc, more))
		return true;
	drop_surplus(cq);
	return false;
}

/* The consumer lags behind: fetch what the next ticket is about while this one is served. */
static void look_ahead(const struct hca_cq *cq, uint64_t head)
{
	uint64_t t = cq_peek(cq, head);
	bool plain = t && ticket_is_recv(t) && !ticket_is_shared(t);
	struct hca_qp *qp = plain ? table_qp(ticket_qp(t)) : NULL;

	if (qp)
		prefetch_read(&end_rqe(&qp->me, qp->rq_landed + 1)->done);
}

static uint64_t next_ticket(struct hca_cq *cq)
{
	uint64_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint64_t t;

	if (cq->early.at < cq->early.n) {
		t = cq->early.t[cq->early.at++];
		atomic_store_explicit(
			&cq->early.left, cq->early.n - cq->early.at, memory_order_relaxed);
		return t;
	}
	t = cq_peek(cq, head);
	if (t) {
		atomic_store_explicit(&cq->head, head + 1, memory_order_relaxed);
		ticket_advance(cq->ring, head + 1);
		look_ahead(cq, head + 1);
	}
	return t;
}

/* Lets others run now and then, and looks after weftd. */
static __attribute__((noinline)) void idle_look(uint32_t n)
{
	if (n % IDLE_POLLS_PER_YIELD == 0) {
		sched_yield();
		agent_look();
	}
	progress_weftd();
}

/*
 * Nothing is there: time for what is done now and then, and for what waits for time.  True: that
 * took a while, so that something may be there now.
 */
static inline bool idle_poll(struct hca_cq *cq)
{
	uint32_t n = atomic_load_explicit(&cq->idle_polls, memory_order_relaxed) + 1;
	bool slow = n % IDLE_POLLS_PER_LOOK == 0;

	atomic_store_explicit(&cq->idle_polls, n, memory_order_relaxed);
	if (slow)
		idle_look(n);
	/* It looks at the clock: a program that polls seldom must not be late for deadlines. */
	if (progress_pending()) {
		progress_slow();
		slow = true;
	}
	return slow;
}

/*
 * Who polls compares "nothing is there" with what it learns next, as that the peer is gone: it
 * must be true after others had their time, not before.
 */
static inline bool stays_empty(struct hca_cq *cq)
{
	return !idle_poll(cq) || cq_looks_empty(cq);
}

static inline int poll_cq(struct hca_cq *cq, int n, struct ibv_wc *wc, struct hca_wc_more *more)
{
	int got = 0;

	if (cq_looks_empty(cq)) {
		if (atomic_load_explicit(&cq->s->failed, memory_order_relaxed))
			return -EIO;
		if (stays_empty(cq))
			return 0;
	}
	lock_take(&cq->lock);
	atomic_store_explicit(&cq->idle_polls, 0, memory_order_relaxed);
	while (got < n) {
		uint64_t t = next_ticket(cq);

		if (!t)
			break;
		got += redeem(cq, t, &wc[got], more);
	}
	lock_drop(&cq->lock);
	return got;
}

int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	return poll_cq(cq, n, wc, NULL);
}

int hca_cq_poll_one(struct hca_cq *cq, struct ibv_wc *wc, struct hca_wc_more *more)
{
	int n;

	*more = (struct hca_wc_more){.stamp_ns = 0};
	n = poll_cq(cq, 1, wc, more);
	if (n > 0 && !more->stamp_ns)
		more->stamp_ns = clock_ns();
	return n;
}

/* ---- when a QP or a region goes ---- */

static bool is_of(uint64_t ticket, uint32_t index)
{
	return ticket_is_shared(ticket) ? rx_purge(ticket, index) : ticket_qp(ticket) == index;
}

/* What was taken out early is served first; the lock is held. */
static void keep_for_later(struct hca_cq *cq, const struct ticket_run *kept)
{
	free(cq->early.t);
	cq->early.t = kept->t;
	cq->early.n = kept->n;
	cq->early.at = 0;
	atomic_store_explicit(&cq->early.left, kept->n, memory_order_relaxed);
}

/* Takes out n tickets at most, and keeps those that are not of that entry. */
static void take_out(struct hca_cq *cq, uint32_t index, uint64_t n, struct ticket_run *kept)
{
	uint64_t t;

	while (n-- && (t = next_ticket(cq)))
		if (!is_of(t, index))
			kept->t[kept->n++] = t;
	keep_for_later(cq, kept);
}

/* All stay where they are; those of an entry that goes are stale from now on. */
static void make_stale(struct hca_cq *cq, uint32_t index)
{
	uint64_t pos = atomic_load_explicit(&cq->head, memory_order_relaxed), t;

	for (uint32_t i = cq->early.at; i < cq->early.n; i++)
		is_of(cq->early.t[i], index);
	for (; (t = cq_peek(cq, pos)); pos++)
		is_of(t, index);
}

/* Who pushes for the entry has done so: its tickets are among those that wait now. */
void cq_purge(struct hca_cq *cq, uint32_t index)
{
	struct ticket_run kept = {.t = NULL};
	uint64_t n;

	if (!cq)
		return;
	lock_take(&cq->lock);
	n = cq_waiting(cq) + 1; /* the tail may not have moved past the last */
	if (!cq_looks_empty(cq)) {
		kept.t = calloc(n, sizeof *kept.t);
		if (kept.t)
			take_out(cq, index, n, &kept);
		else
			make_stale(cq, index);
	}
	lock_drop(&cq->lock);
}

/* ---- another ring ---- */

/*
 * From the store of `resizes` on producers find the new ring; those that looked before are
 * waited for.  Then all that is in the old ring came before what is in the new one.
 */
static void switch_ring(struct hca_cq *cq, const struct new_ring *r, struct ticket_run *kept)
{
	uint32_t n = atomic_load_explicit(&cq->s->resizes, memory_order_relaxed) + 1;
	uint64_t old = ring_offset(cq), old_bytes = cq->ring_bytes;
	uint64_t t;

	place_ring(cq->s, n & 1, r);
	atomic_store_explicit(&cq->s->resizes, n, memory_order_seq_cst);
	quiesce();
	while ((t = next_ticket(cq)))
		kept->t[kept->n++] = t;
	keep_for_later(cq, kept);
	use_ring(cq, n & 1, r);
	heap_free(old, old_bytes);
}

int hca_cq_resize(struct hca_cq *cq, int *cqe)
{
	struct ticket_run kept = {.t = NULL};
	struct new_ring r;
	int rc = 0;

	if (*cqe < 1 || *cqe > HCA_MAX_CQE || cq->epoch != proc_epoch())
		return -EINVAL;
	lock_take(&cq->lock);
	if (cq_waiting(cq) > (uint64_t)*cqe)
		rc = -EINVAL;
	/* As many as can come before the switch: it must not fail half-way. */
	if (!rc) {
		kept.t = calloc(cq->early.n - cq->early.at + cq->ring_bytes / sizeof *kept.t,
			sizeof *kept.t);
		rc = kept.t ? alloc_ring(&r, *cqe) : -ENOMEM;
	}
	if (!rc)
		switch_ring(cq, &r, &kept);
	else
		free(kept.t);
	lock_drop(&cq->lock);
	return rc;
}

static void land_if_of(struct hca_qp *qp, uint64_t ticket)
{
	if (ticket_is_shared(ticket) && ticket_entry(ticket) == qp->me.index)
		rx_land(&qp->rx, ticket);
}

/*
 * Receives of UD get their bytes in the order in which they will complete, that of the tickets.  A
 * slot that has none yet has not arrived: whoever fills it has told nobody.
 */
static void land_datagrams(struct hca_qp *qp)
{
	struct hca_cq *cq = qp->recv_cq;
	uint64_t pos, t;

	lock_take(&cq->lock);
	for (uint32_t i = cq->early.at; i < cq->early.n; i++)
		land_if_of(qp, cq->early.t[i]);
	pos = atomic_load_explicit(&cq->head, memory_order_relaxed);
	for (; (t = cq_peek(cq, pos)); pos++)
		land_if_of(qp, t);
	lock_drop(&cq->lock);
}

/* The word of the thread of ours that posted it is read, too: what it wrote is read next. */
static bool has_arrived(const struct hca_qp *qp, uint32_t pos)
{
	struct seg_rqe *r = end_rqe(&qp->me, pos);

	return atomic_load_explicit(&r->done, memory_order_acquire) == pos + 1 &&
	       atomic_load_explicit(&r->posted, memory_order_acquire) == pos + 1;
}

static void land_arrived(struct hca_qp *qp)
{
	uint32_t pos;

	if (qp->rx.ref.ring.slots)
		land_datagrams(qp);
	if (!qp->me.rq)
		return;
	lock_take(&qp->recv_cq->lock);
	pos = qp->rq_landed;
	while (pos - qp->rq_landed <= qp->me.rq_mask && has_arrived(qp, pos))
		pos++;
	qp_land(qp, pos);
	lock_drop(&qp->recv_cq->lock);
}

void pd_land_all(struct hca_pd *pd)
{
	lock_take(&pd->lock);
	for (struct hca_qp *qp = pd->qps; qp; qp = qp->next)
		land_arrived(qp);
	for (struct hca_srq *srq = pd->srqs; srq; srq = srq->next) {
		rx_land_all(&srq->rx);
		if (srq->tm)
			rx_land_all(tm_rxq(srq->tm));
	}
	lock_drop(&pd->lock);
}

static void pass(struct lock *l)
{
	lock_take(l);
	lock_drop(l);
}

void pd_pass_landers(struct hca_pd *pd)
{
	lock_take(&pd->lock);
	for (struct hca_qp *qp = pd->qps; qp; qp = qp->next) {
		if (qp->rx.ref.ring.slots)
			pass(&qp->rx.land);
		if (qp->me.rq)
			pass(&qp->recv_cq->lock);
	}
	for (struct hca_srq *srq = pd->srqs; srq; srq = srq->next) {
		pass(&srq->rx.land);
		if (srq->tm)
			pass(&tm_rxq(srq->tm)->land);
	}
	lock_drop(&pd->lock);
}

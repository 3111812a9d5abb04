// SPDX-License-Identifier: BSD-3-Clause
/* The consumer side of the ticket ring. */
#include "hca/queue/cq_poll.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "hca/api/hca.h"
#include "hca/exec/flush.h"
#include "hca/obj/qp.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/queue/cq.h"
#include "hca/queue/explain.h"
#include "hca/queue/land.h"
#include "hca/queue/own_rxq.h"
#include "hca/queue/tm.h"
#include "hca/run/agent.h"
#include "hca/run/far.h"
#include "hca/run/progress.h"
#include "hca/seg/opcode.h"

enum { IDLE_POLLS_PER_YIELD = 1024, IDLE_POLLS_PER_LOOK = 16 };

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

	if (ticket_is_rxq(ticket)) {
		if (own_rxq_redeem(ticket, cq->index, wc, more)) {
			if (wc->opcode == IBV_WC_TM_RECV)
				note_tagged(ticket, wc);
			if (wc->status != IBV_WC_SUCCESS) {
				break_qp(table_qp(ticket_entry(ticket)), wc->status);
				explain_rxq(wc);
			}
			return true;
		}
		drop_surplus(cq);
		return false;
	}
	qp = table_qp(ticket_qp(ticket));
	if (!qp)
		return take_tag_op(ticket, wc);
	if (ticket_gen(ticket) != (end_gen(&qp->me) & TICKET_GEN_MASK))
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
	bool plain = t && ticket_is_recv(t) && !ticket_is_rxq(t);
	struct hca_qp *qp = plain ? table_qp(ticket_qp(t)) : NULL;

	if (qp)
		prefetch_read(&end_rqe(&qp->me, qp->rq_landed + 1)->done);
}

uint64_t cq_next_ticket(struct hca_cq *cq)
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
	/* Then what comes may be in a socket. */
	if (atomic_load_explicit(&cq->far_qps, memory_order_relaxed))
		slow |= far_look_in(n);
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
			return explain_overrun(cq), -EIO;
		if (stays_empty(cq))
			return 0;
	}
	lock_take(&cq->lock);
	atomic_store_explicit(&cq->idle_polls, 0, memory_order_relaxed);
	while (got < n) {
		uint64_t t = cq_next_ticket(cq);

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

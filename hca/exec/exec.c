// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/exec.h"

#include "base/clock.h"
#include "base/tsan.h"
#include "hca/exec/announce.h"
#include "hca/exec/carry.h"
#include "hca/exec/exec_agent.h"
#include "hca/exec/fail.h"
#include "hca/exec/flush.h"
#include "hca/exec/op.h"
#include "hca/exec/qp_timers.h"
#include "hca/exec/range.h"
#include "hca/seg/park.h"
#include "hca/seg/tm_list.h"
#include "hca/seg/token.h"

enum {
	RNR_RETRY_FOREVER = 7,
	TIMER_LATE_NS = 100 * NSEC_PER_MSEC,
	FINDING_NS = 500 * NSEC_PER_MSEC,
	YOUNG_NS = 1000 * NSEC_PER_MSEC,
	OWNER_MIN_NS = 200 * NSEC_PER_MSEC, /* an agent must be scheduled; given */
	DEADLINE_NOW = 1,
	STEP_REQUESTS = 64
};

#define OWNER_SLOW_NS (5 * NSEC_PER_SEC) /* ... so long if it only waits for a CPU */

bool exec_weftd_is_young(const struct exec *x)
{
	uint64_t since =
		x->restarted_ns ? atomic_load_explicit(x->restarted_ns, memory_order_relaxed) : 0;

	return since && clock_ns() - since < YOUNG_NS;
}

/* Have the two ends still to find each other? */
static bool unbound(const struct work *w)
{
	const struct end *resp = w->resp;

	if (!w->req->qp->peer_attach)
		return true;
	return resp && !view_dead(&resp->view) && !resp->qp->peer_attach &&
	       resp->qp->dest_qpn == w->req->qpn;
}

/* Does weftd, being new, perhaps not know yet where the other end is? */
static bool may_be_found(const struct work *w)
{
	return (unbound(w) || w->req->type == IBV_QPT_XRC_SEND) && exec_weftd_is_young(w->x);
}

static uint64_t owner_patience(const struct seg_qp *q)
{
	uint64_t ns = ack_patience_ns(q);

	return ns < OWNER_SLOW_NS ? OWNER_SLOW_NS : ns;
}

/* How long the head may stay parked for that reason: 0 = not at all, UINT64_MAX = for ever. */
static uint64_t patience(const struct work *w, enum seg_park reason)
{
	const struct seg_qp *q = w->req->qp;

	if (reason == PARK_OWNER)
		return owner_patience(q);
	if (w->req->type == IBV_QPT_UC)
		return FINDING_NS;
	if (reason != PARK_RNR) {
		uint64_t ns = ack_patience_ns(q);

		return ns < FINDING_NS && may_be_found(w) ? FINDING_NS : ns;
	}
	if (q->rnr_retry >= RNR_RETRY_FOREVER)
		return UINT64_MAX;
	return q->rnr_retry * rnr_timer_ns(w->resp->qp->rnr_timer);
}

/* Tells weftd of a deadline, unless it looks at the QP before that anyway. */
static void ask_for_timer(struct work *w, uint64_t deadline)
{
	struct seg_qp *q = w->req->qp;
	uint64_t asked;

	/* weftd clears timer_ns, then reads the deadline: one of us sees the other. */
	atomic_thread_fence(memory_order_seq_cst);
	asked = atomic_load_explicit(&q->timer_ns, memory_order_seq_cst);
	/* One that is long overdue died with weftd. */
	if (asked && asked <= deadline && clock_ns() < asked + TIMER_LATE_NS)
		return;
	atomic_store_explicit(&q->timer_ns, deadline, memory_order_seq_cst);
	if (!w->x->timer(w->req->view.attach, w->req->index, deadline, w->x->arg))
		atomic_store_explicit(&q->timer_ns, 0, memory_order_relaxed);
}

static void park_begin(struct work *w, enum seg_park reason)
{
	struct seg_qp *q = w->req->qp;
	uint64_t wait = patience(w, reason);
	uint64_t deadline = wait == UINT64_MAX ? 0 : clock_ns() + wait;

	static const enum seg_counter counters[] = {[PARK_RNR] = CTR_RNR_PARKS,
		[PARK_NO_PEER] = CTR_PEER_PARKS,
		[PARK_OWNER] = CTR_HANDED_OVER};

	count_add(w->x, counters[reason], 1);
	atomic_store_explicit(&q->deadline, deadline, memory_order_relaxed);
	atomic_store_explicit(&q->park_reason, reason, memory_order_release);
	if (reason == PARK_RNR)
		range_park_copy(w);
	if (!wait) /* rnr_retry 0: the first RNR NAK is the last */
		atomic_store_explicit(&q->deadline, DEADLINE_NOW, memory_order_relaxed);
	else if (deadline)
		ask_for_timer(w, deadline);
}

static void park_end(struct seg_qp *q)
{
	if (atomic_load_explicit(&q->park_reason, memory_order_relaxed) == PARK_NONE)
		return;
	atomic_store_explicit(&q->park_reason, PARK_NONE, memory_order_relaxed);
	atomic_store_explicit(&q->deadline, 0, memory_order_relaxed);
	atomic_store_explicit(&q->parked_copy, 0, memory_order_relaxed);
}

static enum ibv_wc_status park_status(enum seg_park reason)
{
	return reason == PARK_RNR ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR;
}

static bool deadline_passed(const struct seg_qp *q)
{
	uint64_t d = atomic_load_explicit(&q->deadline, memory_order_relaxed);

	return d == DEADLINE_NOW || (d && clock_ns() >= d);
}

/* The responder posted a receive while we parked. */
static bool receive_came(const struct work *w)
{
	uint32_t pos;

	if (w->mem->rxq.ring.slots)
		return rxq_has_more(&w->mem->rxq.ring) ||
		       (w->mem->rxq.matches_tags &&
			       (uint32_t)tm_word(&w->mem->tags) != (uint32_t)w->tm_seen);
	pos = atomic_load_explicit(&w->resp->qp->rq_head, memory_order_relaxed);

	return w->resp->rq && atomic_load_explicit(&end_rqe(w->resp, pos)->posted,
				      memory_order_acquire) == pos + 1;
}

/* Has it handed the head over for as long as an adapter waits, to a process that was stopped? */
static bool owner_stopped(const struct work *w)
{
	const struct seg_qp *q = w->req->qp;
	uint64_t d = atomic_load_explicit(&q->deadline, memory_order_relaxed);
	uint64_t ack = ack_patience_ns(q);

	if (!d || d == DEADLINE_NOW)
		return false;
	if (ack < OWNER_MIN_NS)
		ack = OWNER_MIN_NS;
	return clock_ns() >= d - owner_patience(q) + ack && view_stopped(&w->resp->view);
}

/* Parks the head, or fails it if it has waited long enough.  True: look again at once. */
static bool park(struct work *w, enum seg_park reason)
{
	struct seg_qp *q = w->req->qp;

	if (atomic_load_explicit(&q->park_reason, memory_order_relaxed) != reason)
		park_begin(w, reason);
	if (reason == PARK_RNR) {
		park_set(&w->resp->qp->park);
		if (w->mem->rxq.ring.slots)
			park_set(&w->mem->rxq.entry->rxq.park);
		if (receive_came(w) || !end_receives(w->resp)) {
			park_clear(&w->resp->qp->park);
			return true;
		}
	}
	if (!deadline_passed(q) && (reason != PARK_OWNER || !owner_stopped(w)))
		return false;
	park_end(q);
	if (w->req->type == IBV_QPT_UC) {
		if (reason == PARK_OWNER)
			work_drop(w, CTR_DROP_NO_QP);
		return true;
	}
	work_fail(w, park_status(reason));
	return false;
}

static enum step execute(struct work *w)
{
	enum step s;

	if (w->req->type == IBV_QPT_UD) /* in the segment of a peer it is a lie: nobody helps UD */
		return w->req->view.pid ? work_failed(w, IBV_WC_LOC_QP_OP_ERR)
					: (enum step)w->x->datagram(w);
	s = w->resp || op_is_local(w->op) ? op_execute(w) : STEP_NO_PEER;
	/* Nobody answers UC: what finds no peer and no receive is lost. */
	if (s == STEP_NO_PEER && w->req->type == IBV_QPT_UC && may_be_found(w) &&
		!deadline_passed(w->req->qp))
		return s;
	if ((s == STEP_NO_PEER || s == STEP_RNR) && w->req->type == IBV_QPT_UC)
		return work_drop(w, s == STEP_RNR ? CTR_DROP_NO_RECV : CTR_DROP_NO_QP);
	return s;
}

/* What the state of the requester lets us do with the queue. */
static inline bool may_execute(struct exec *x, const struct end *req)
{
	uint32_t state = end_state(req);

	if (__builtin_expect(state == IBV_QPS_RTS, 1))
		return true;
	if (state == IBV_QPS_ERR || state == IBV_QPS_SQE)
		qp_flush(x, req, true);
	return false;
}

/* A completion of a dead executor was written but perhaps not announced. */
static bool already_done(const struct work *w)
{
	return atomic_load_explicit(&end_wqe(w->req, w->pos)->done, memory_order_acquire) ==
	       w->pos + 1;
}

static bool queue_empty(const struct seg_qp *q)
{
	return atomic_load_explicit(&q->sq_head, memory_order_acquire) ==
	       atomic_load_explicit(&q->sq_tail, memory_order_acquire);
}

/* For weftd, which does not run the queue: announces what a dead helper did at its head. */
static void announce_done(struct work *w)
{
	for (uint32_t n = 0; n <= w->req->sq_mask; n++) {
		w->pos = atomic_load_explicit(&w->req->qp->sq_head, memory_order_acquire);
		if (queue_empty(w->req->qp) || !already_done(w))
			return;
		park_end(w->req->qp);
		complete_send_again(w->x, w->req, w->pos);
	}
}

/* Only the process to whose memory the head goes can carry it out: it is asked to. */
static enum run_end leave_to_owner(struct work *w)
{
	w->for_owner = false;
	if (park(w, PARK_OWNER))
		return RUN_BUDGET;
	w->hand_over =
		atomic_load_explicit(&w->req->qp->park_reason, memory_order_relaxed) == PARK_OWNER;
	return w->hand_over ? RUN_PARKED : RUN_IDLE;
}

/* The head cannot be executed here: our own worker does it, or the requester itself. */
static enum run_end leave_to_another(struct work *w)
{
	if (w->for_owner)
		return leave_to_owner(w);
	if (!w->req->view.pid)
		return RUN_BUDGET;
	/* A flush of our own memory, which blocks. */
	if (w->op->kind == OP_FLUSH && !w->mem->view.pid)
		return RUN_BUDGET;
	if (w->for_worker) {
		w->for_worker = false;
		return RUN_BUDGET;
	}
	if (atomic_load_explicit(&w->req->qp->park_reason, memory_order_relaxed) == PARK_OWNER)
		atomic_store_explicit(&w->req->qp->alone, 1, memory_order_relaxed);
	park_end(w->req->qp); /* nothing holds it up any more */
	w->call_owner = !exec_agent_hand_back(w->req);
	return RUN_PARKED;
}

static enum run_end run_queue(struct work *w, struct budget *b)
{
	struct seg_qp *q = w->req->qp;

	for (unsigned n = 1;; n++) {
		uint32_t pos = atomic_load_explicit(&q->sq_head, memory_order_acquire);
		uint32_t queued = atomic_load_explicit(&q->sq_tail, memory_order_acquire) - pos;

		if (n % STEP_REQUESTS == 0)
			work_step(w);
		/* More than fit: the owner scribbled over its own queue. */
		if (!may_execute(w->x, w->req) || !queued || queued > w->req->sq_mask + 1)
			return RUN_IDLE;
		if (!b->requests || w->moved >= b->bytes)
			return RUN_BUDGET;
		w->pos = pos;
		if (already_done(w)) {
			complete_send_again(w->x, w->req, pos);
			continue;
		}
		if (!work_read(w, pos)) {
			work_fail(w, IBV_WC_LOC_QP_OP_ERR);
			return RUN_IDLE;
		}
		if (w->length >= b->large)
			return RUN_BUDGET;
		if (w->way != SLOT_WAYS_ANY && !op_is_one_sided(w->op))
			work_any_way(w);
		b->requests--;
		switch (execute(w)) {
		case STEP_DONE:
			park_end(q);
			continue;
		case STEP_FAILED:
			park_end(q);
			return RUN_IDLE;
		case STEP_RNR:
			if (park(w, PARK_RNR))
				continue;
			return RUN_PARKED;
		case STEP_NO_PEER:
			if (park(w, PARK_NO_PEER))
				continue;
			return RUN_PARKED;
		case STEP_BUSY:
			return RUN_BUSY;
		case STEP_LATER:
			return leave_to_another(w);
		case STEP_NOT_OURS: /* it looks itself, too */
			return RUN_PARKED;
		}
	}
}

/* The target of XRC and a shared receive queue send nothing. */
/* The slot may be posted anew meanwhile. */
RACY_GUESS bool exec_one_sided(const struct end *req)
{
	uint32_t pos = atomic_load_explicit(&req->qp->sq_head, memory_order_relaxed);

	return end_sends(req) && op_is_one_sided(op_of(end_wqe(req, pos)->opcode));
}

/* With the token free, so that the agent finds it so. */
static enum run_end handed_over(const struct work *w)
{
	if (exec_agent_hand_over(w->resp))
		return RUN_PARKED;
	atomic_store_explicit(&w->req->qp->alone, 1, memory_order_relaxed);
	return RUN_BUDGET;
}

/*
 * Its owner has no agent that takes it back, but watches it: whenever it looks for completions it
 * looks at that, too.  So it is made to, by an event if it waits for one.
 */
static void call_owner(const struct work *w)
{
	const struct end *req = w->req;

	if (req->send_cq.cq)
		cq_fire(w->x, req->view.seg, req->view.attach, req->send_cq.index, true);
}

enum run_end exec_run(
	struct exec *x, const struct end *req, const struct end *resp, struct budget b)
{
	struct end mem_now; /* large, and hardly ever used */
	struct work w = {.x = x, .req = req, .resp = resp, .mem = resp, .mem_now = &mem_now};
	enum run_end end;

	if (!end_sends(req))
		return RUN_IDLE;
	w.plain = resp && resp->view.pid && !req->view.pid && resp->rq && !resp->rxq.ring.slots;
	w.named = resp ? resp->view.attach : req->view.attach;
	/* Datagrams: most likely for the process to which the last one went. */
	if (req->type == IBV_QPT_UD && req->qp->peer_attach)
		w.named = req->qp->peer_attach;
	w.way = b.one_sided && !x->copies ? SLOT_WAYS_MAPPED : SLOT_WAYS_ANY;
	slot_enter_as(x->slot, req->view.attach, w.named, w.way);
	if (!token_take(&req->qp->token, x->owner)) {
		slot_leave(x->slot);
		return RUN_KICKED;
	}
	do {
		end = run_queue(&w, &b);
		if (w.rq_held) {
			rq_token_drop(x, resp);
			w.rq_held = false;
		}
	} while (token_drop(&req->qp->token, x->owner) == TOKEN_KICKED);
	if (w.hand_over && end == RUN_PARKED)
		end = handed_over(&w);
	if (w.call_owner && end == RUN_PARKED)
		call_owner(&w);
	slot_leave(x->slot);
	return end;
}

/*
 * weftd cannot execute.  A kick that came while it held the token is moot if the queue is in ERR
 * now; else the kicker, who saw who held it, watches the queue (RUN_KICKED), and is woken.
 */
bool exec_expire(struct exec *x, const struct end *req)
{
	struct work w = {.x = x, .req = req};
	struct seg_qp *q = req->qp;
	bool kicked = false, expired = false;

	if (!end_sends(req))
		return false;
	slot_enter(x->slot, req->view.attach, req->view.attach);
	if (token_take(&q->token, x->owner)) {
		do {
			enum seg_park why;

			announce_done(&w);
			why = atomic_load_explicit(&q->park_reason, memory_order_relaxed);
			/* A helper that died behind sq_head leaves an empty queue parked. */
			if (!may_execute(x, req) || why == PARK_NONE || queue_empty(q) ||
				!deadline_passed(q))
				continue;
			/* Its owner drops it, which is no error. */
			if (req->type == IBV_QPT_UC) {
				kicked = true;
				continue;
			}
			/* In this order, so that the next weftd fails it if we die here. */
			work_fail(&w, park_status(why));
			park_end(q);
			expired = true;
		} while (token_drop(&q->token, x->owner) == TOKEN_KICKED && (kicked = true));
	}
	slot_leave(x->slot);
	return kicked && !expired;
}

void exec_peer_died(struct exec *x, const struct end *req)
{
	struct work w = {.x = x, .req = req};
	struct seg_qp *q = req->qp;

	if (!end_sends(req))
		return;
	slot_enter(x->slot, req->view.attach, req->view.attach);
	if (token_take(&q->token, x->owner)) {
		do {
			announce_done(&w);
			if (may_execute(x, req) && !queue_empty(q) &&
				atomic_load_explicit(&q->park_reason, memory_order_relaxed) !=
					PARK_NO_PEER)
				park_begin(&w, PARK_NO_PEER);
		} while (token_drop(&q->token, x->owner) == TOKEN_KICKED);
	}
	slot_leave(x->slot);
}

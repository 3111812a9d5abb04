// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/exec_op.h"

#include <errno.h>

#include "hca/exec/carry.h"
#include "hca/exec/exec_agent.h"
#include "hca/exec/exec_plain.h"
#include "hca/exec/exec_send.h"
#include "hca/exec/exec_tm.h"
#include "hca/exec/persist.h"
#include "hca/exec/way_table.h"
#include "hca/exec/window.h"
#include "hca/seg/token.h"

enum { MTU_BASE_LOG = 7 };

bool work_read(struct work *w, uint32_t pos)
{
	const struct seg_wqe *slot = end_wqe(w->req, pos);

	w->pos = pos;
	w->flags = slot->flags;
	w->num_sge = slot->num_sge;
	w->imm = slot->imm;
	w->rkey = slot->rkey;
	w->raddr = slot->raddr;
	w->op = op_of(slot->opcode);
	if (w->req->type == IBV_QPT_XRC_SEND)
		w->srqn = slot->aux[0] << 16 | slot->aux[1] << 8 | slot->aux[2];
	w->sge = slot->sge;
	w->inline_data = NULL;
	w->shared = false;
	w->length = 0;
	if (w->op->kind >= OP_ATOMIC) {
		w->fetch_add = slot->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		w->compare_add = slot->compare_add;
		w->swap = slot->swap;
	}
	/* Our lists hold so many, whatever the slots of a peer's queue could. */
	if (w->num_sge > w->req->sge_max || w->num_sge > SGL_MAX - 1)
		return false;
	if (w->flags & WQE_INLINE) {
		w->inline_data = (const uint8_t *)slot->sge;
		w->length = slot->inline_len;
		return w->op->kind != OP_NONE && op_may_be_inline(w->op) &&
		       w->length <= w->req->sq_stride - sizeof *slot;
	}
	for (unsigned i = 0; i < w->num_sge; i++)
		w->length += w->sge[i].length;
	return w->op->kind != OP_NONE;
}

/* ---- the two ends' failures ---- */

static const enum seg_counter error_counters[] = {
	[IBV_WC_LOC_PROT_ERR] = CTR_ERR_LOC_PROT,
	[IBV_WC_LOC_LEN_ERR] = CTR_ERR_LOC_LEN,
	[IBV_WC_REM_ACCESS_ERR] = CTR_ERR_REM_ACCESS,
	[IBV_WC_REM_INV_REQ_ERR] = CTR_ERR_REM_INV_REQ,
	[IBV_WC_REM_OP_ERR] = CTR_ERR_REM_OP,
	[IBV_WC_RNR_RETRY_EXC_ERR] = CTR_ERR_RNR,
	[IBV_WC_RETRY_EXC_ERR] = CTR_ERR_RETRY,
};

void work_count_error(struct exec *x, enum ibv_wc_status status)
{
	if (status < sizeof error_counters / sizeof *error_counters && error_counters[status])
		count_add(x, error_counters[status], 1);
}

void work_fail(struct work *w, enum ibv_wc_status status)
{
	const struct outcome o = {.status = status};

	work_count_error(w->x, status);
	qp_set_send_error(w->req);
	complete_send(w->x, w->req, w->pos, &o);
	qp_flush(w->x, w->req, true);
}

enum step work_failed(struct work *w, enum ibv_wc_status status)
{
	work_fail(w, status);
	return STEP_FAILED;
}

enum step work_blame(struct work *w, enum ibv_wc_status status)
{
	if (w->req->type == IBV_QPT_UC)
		return work_drop(w, CTR_DROP_ACCESS);
	return work_failed(w, status);
}

/* For the responder's log; the one who moved its QP to ERR writes it, before that is told. */
static void note_fault(const struct work *w, enum ibv_wc_status status)
{
	const struct seg_header *from = &w->req->view.seg->hdr;
	struct seg_fault *f = &w->resp->qp->fault;

	f->status = status;
	f->opcode = end_wqe(w->req, w->pos)->opcode;
	f->from_qpn = w->req->qpn;
	f->from_pid = from->pid;
	f->rkey = w->rkey;
	f->need = op_rights(w->op, w->swap);
	f->raddr = w->raddr;
	f->length = w->op->kind == OP_FLUSH ? w->compare_add : w->length;
	memcpy(f->comm, from->comm, sizeof f->comm);
	atomic_store_explicit(&f->gen, w->resp->gen + 1, memory_order_release);
}

enum step work_fail_both(struct work *w, enum ibv_wc_status status, enum ibv_event_type event)
{
	if (w->req->type != IBV_QPT_UC && qp_set_error(w->resp)) {
		note_fault(w, status);
		raise_qp_event(w->x, w->resp, event);
		qp_flush(w->x, w->resp, false);
	}
	return work_blame(w, status);
}

/* ---- when bytes were not moved ---- */

bool work_requester_fault(enum move_result r, bool requester_here)
{
	return r == (requester_here ? MOVE_FAULT_LOCAL : MOVE_FAULT_REMOTE);
}

/*
 * A region is changing over: the request begins anew when that is through.  Its owner may have
 * died in the middle of it.
 */
static enum step busy(struct work *w)
{
	const struct view *v = w->req->view.pid ? &w->req->view : &w->mem->view;

	w->busy = false;
	if (v->pid && !carry_alive(w, v))
		return STEP_NO_PEER;
	count_add(w->x, CTR_MAP_BUSY, 1);
	return STEP_BUSY;
}

/* Has a region of the requester, on which the request relied, gone? */
static bool own_gone(const struct work *w)
{
	for (unsigned i = 0; i < w->num_sge && !w->inline_data; i++) {
		const struct seg_sge s = w->sge[i];

		if (s.length && !mr_has_key(seg_mr_of(w->req->view.seg, s.lkey), s.lkey))
			return true;
	}
	return false;
}

/* A region or a QP was taken away in the middle. */
static enum step stopped(struct work *w, enum ibv_wc_status remote)
{
	if (end_state(w->req) != IBV_QPS_RTS) {
		qp_flush(w->x, w->req, true);
		return STEP_FAILED;
	}
	if (own_gone(w))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	return end_receives(w->resp) ? work_blame(w, remote) : STEP_NO_PEER;
}

enum step work_move_failed(struct work *w, enum move_result r, enum ibv_wc_status remote)
{
	if (r == MOVE_GONE)
		return STEP_NO_PEER;
	if (r == MOVE_LATER)
		return STEP_LATER;
	if (r == MOVE_BUSY)
		return STEP_BUSY;
	if (r == MOVE_LATE)
		return work_failed(w, IBV_WC_RETRY_EXC_ERR);
	if (r == MOVE_STOPPED && w->busy)
		return busy(w);
	if (r == MOVE_STOPPED)
		return stopped(w, remote);
	if (r == MOVE_REFUSED)
		return work_blame(w, IBV_WC_REM_OP_ERR);
	if (work_requester_fault(r, end_is_here(w->req)))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (remote == IBV_WC_REM_ACCESS_ERR)
		return work_fail_both(w, remote, IBV_EVENT_QP_ACCESS_ERR);
	return work_blame(w, remote);
}

/*
 * The requester's SGEs, with the rights of need; false: an lkey does not allow it.  (Lists and held
 * are large: they are never zeroed whole on the hot path.)
 */
static bool local_range(struct work *w, unsigned need, struct payload *p, struct held *held)
{
	payload_begin(p, held);
	if (!resolve_sges(
		    &w->req->view, w->req->pd, w->sge, w->num_sge, w->length, need, &p->l, held))
		return false;
	way_of_requester(w->req, p, held);
	return true;
}

bool work_source(struct work *w, struct payload *p, struct held *held)
{
	held->n = 0;
	held->busy = false;
	if (w->inline_data)
		payload_of_bytes(p, (void *)w->inline_data, w->length);
	else if (w->length && w->length <= SEG_PARK_BYTES &&
		 atomic_load_explicit(&w->req->qp->parked_copy, memory_order_acquire) == w->pos + 1)
		payload_of_bytes(p, w->req->park_buf, w->length);
	else
		return local_range(w, 0, p, held);
	return true;
}

void work_park_copy(struct work *w)
{
	struct held held;
	struct payload p;

	if (w->op->kind != OP_SEND || w->inline_data || !w->length || w->length > SEG_PARK_BYTES ||
		!end_is_here(w->req) || !work_source(w, &p, &held))
		return;
	sgl_gather(&p.l, w->req->park_buf);
	atomic_store_explicit(&w->req->qp->parked_copy, w->pos + 1, memory_order_release);
}

/* ---- the requester's completion ---- */

static void count_packets(struct work *w)
{
	unsigned mtu_log = MTU_BASE_LOG + (w->req->qp->mtu & 7);
	uint64_t n = (w->length + (1u << mtu_log) - 1) >> mtu_log;
	_Atomic uint64_t *packets = &w->req->qp->packets;
	uint64_t v = atomic_load_explicit(packets, memory_order_relaxed);

	atomic_store_explicit(packets, v + (n ? n : 1), memory_order_relaxed);
}

enum step work_drop(struct work *w, enum seg_counter why)
{
	count_add(w->x, why, 1);
	return work_succeed(w);
}

enum step work_succeed(struct work *w)
{
	const struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};

	count_packets(w);
	complete_send(w->x, w->req, w->pos, &o);
	return STEP_DONE;
}

/* ---- RDMA ---- */

/* The responder's side of an RDMA operation: the rkey and the QP must both allow it. */
static bool remote_range(
	struct work *w, uint64_t len, unsigned need, struct payload *p, struct held *held)
{
	payload_begin(p, held);
	if ((w->resp->qp->access & need) != need)
		return false;
	if (len && !resolve_remote(w->mem, w->rkey, w->raddr, len, need, &p->l, held))
		return false;
	if (len && share_is_mapped(held->mr[held->n - 1].share))
		mr_note_use(held->mr[held->n - 1].mr);
	way_of_responder(w, p, held);
	return true;
}

static enum step do_write(struct work *w)
{
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct held held;
	struct payload src, dst;
	enum move_result moved;
	enum step s;

	if (work_rdma_plain(w, &s))
		return s;
	if (!work_source(w, &src, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (!remote_range(w, w->length, w->op->remote_access, &dst, &held))
		return work_fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	if (w->op->takes_recv) {
		s = send_find_receive(w);
		if (s != STEP_DONE)
			return s;
	}
	moved = carry(w, &src, &dst, &held);
	if (moved != MOVE_OK) {
		s = work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
		if (w->op->takes_recv)
			send_leave_receive(w);
		return s;
	}
	if (w->op->takes_recv) {
		struct received r = {.where = RQ_DIRECT};

		send_fill_received(w, &r);
		send_note_established(w);
		return send_finish(w, &o, &r);
	}
	return work_succeed(w);
}

/* The requester's buffer of a READ or an atomic; false: an lkey does not allow it. */
static bool sink(struct work *w, struct payload *p, struct held *held)
{
	held->n = 0;
	held->busy = false;
	return local_range(w, IBV_ACCESS_LOCAL_WRITE, p, held);
}

/* READs and atomics need resources that both ends agreed on. */
static bool no_rd_atomic(struct work *w, enum step *s)
{
	if (!w->req->qp->max_rd_atomic) {
		*s = work_failed(w, IBV_WC_LOC_QP_OP_ERR);
		return true;
	}
	if (!w->resp->qp->max_dest_rd_atomic) {
		*s = work_fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		return true;
	}
	return false;
}

static enum step do_read(struct work *w)
{
	struct held held;
	struct payload src, dst;
	void (*pushed)(struct work * w);
	enum move_result moved;
	enum step s;

	if (w->req->qp->max_rd_atomic && w->resp->qp->max_dest_rd_atomic && work_rdma_plain(w, &s))
		return s;
	if (!sink(w, &dst, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (no_rd_atomic(w, &s))
		return s;
	if (!remote_range(w, w->length, w->op->remote_access, &src, &held))
		return work_fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	pushed = src.way->pushed;
	moved = carry(w, &src, &dst, &held);
	if (moved != MOVE_OK)
		return work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	if (pushed)
		pushed(w);
	return work_succeed(w);
}

/* Either end's memory is only reached by an agent, which needs a thread that may sleep. */
static bool agent_due(const struct work *w)
{
	return (view_by_agent(&w->req->view) || view_by_agent(&w->mem->view)) &&
	       exec_agent_later(w);
}

static enum step do_atomic(struct work *w)
{
	struct held held;
	struct payload target, result, old;
	enum move_result moved;
	uint64_t before;
	enum step s;

	if (w->length != sizeof before)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (!sink(w, &result, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (no_rd_atomic(w, &s))
		return s;
	if (w->raddr % sizeof before)
		return work_fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	if (!remote_range(w, sizeof before, w->op->remote_access, &target, &held))
		return work_fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	/* Before the update: it must not be done twice. */
	if (agent_due(w))
		return STEP_LATER;
	if (!result.way->here && carry_by_call(w, &held) != MOVE_OK)
		return work_move_failed(w, MOVE_STOPPED, IBV_WC_REM_ACCESS_ERR);
	moved = held.busy ? carry_busy(w) : target.way->update(w, &target, &held, &before);
	if (moved != MOVE_OK)
		return work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	payload_of_bytes(&old, &before, sizeof(uint64_t));
	moved = carry(w, &old, &result, &held);
	if (moved != MOVE_OK)
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	count_add(w->x, CTR_ATOMICS, 1);
	return work_succeed(w);
}

/* ---- ATOMIC WRITE and FLUSH ---- */

/* The requester's 8 bytes, wherever they are. */
static enum move_result fetch_word(struct work *w, struct held *held, uint64_t *word)
{
	struct payload src, here;

	if (!work_source(w, &src, held))
		return MOVE_FAULT_LOCAL;
	payload_of_bytes(&here, word, sizeof(uint64_t));
	return carry(w, &src, &here, held);
}

static enum step do_atomic_write(struct work *w)
{
	struct held held;
	struct payload target;
	enum move_result moved;
	uint64_t word;
	enum step s;

	if (w->length != sizeof word)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (agent_due(w))
		return STEP_LATER;
	moved = fetch_word(w, &held, &word);
	if (moved == MOVE_STOPPED && w->busy)
		return busy(w);
	if (moved != MOVE_OK)
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	if (no_rd_atomic(w, &s))
		return s;
	if (w->raddr % sizeof word)
		return work_fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	if (!remote_range(w, sizeof word, w->op->remote_access, &target, &held))
		return work_fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	moved = held.busy ? carry_busy(w) : target.way->store(w, &target, &held, word);
	if (moved != MOVE_OK)
		return work_move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	return work_succeed(w);
}

/* The range that a flush is about: the one given, or the whole region. */
static bool flush_range(struct work *w, unsigned need, struct payload *p, struct held *held)
{
	bool allowed;

	if (!flush_is_whole(w->swap))
		return remote_range(w, w->compare_add, need, p, held);
	payload_begin(p, held);
	allowed = (w->resp->qp->access & need) == need &&
		  resolve_whole(w->mem, w->rkey, need, &p->l, held);
	if (allowed)
		way_of_responder(w, p, held);
	return allowed;
}

/*
 * Whatever this QP wrote before is in place already, visible to all: the copies were made by a
 * CPU, in the order of the queue.  What is left for the global type are the checks, and a fence
 * for copies within the process.
 */
static enum step do_flush(struct work *w)
{
	uint8_t types = flush_types(w->swap);
	struct held held = {.n = 0};
	struct payload range;
	enum move_result r;
	enum step s;

	if (no_rd_atomic(w, &s))
		return s;
	if (!flush_range(w, op_rights(w->op, w->swap), &range, &held))
		return work_fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	atomic_thread_fence(memory_order_seq_cst);
	if (types & IBV_FLUSH_PERSISTENT) {
		r = persist_range(w, &range, &held);
		if (r != MOVE_OK)
			return work_move_failed(w, r, IBV_WC_REM_ACCESS_ERR);
	}
	if (range.way->pushed)
		range.way->pushed(w);
	return work_succeed(w);
}

/* ---- requests that the peer does not hear of ---- */

/*
 * Is somebody still executing what comes from the peer, who may have looked at a key that is void
 * now?  One that began since does not count: the slot remembers which run it was.
 */
static bool peer_runs(const struct work *w)
{
	struct seg_wqe *slot = end_wqe(w->req, w->pos);
	uint64_t now;

	if (!w->resp)
		return false;
	now = atomic_load_explicit(&w->resp->qp->token, memory_order_seq_cst);
	if (!token_attach(now) || (w->swap && (w->swap ^ now) & TOKEN_GEN_MASK))
		return false;
	slot->swap = now;
	return true;
}

static enum step do_local(struct work *w)
{
	const struct outcome o = {.status = IBV_WC_SUCCESS};

	if (w->op->kind == OP_BIND) {
		if (!window_bind(w))
			return work_failed(w, IBV_WC_MW_BIND_ERR);
	} else {
		if (!window_invalidate(w->req, w->imm, w->req, w->pos))
			return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
		atomic_thread_fence(memory_order_seq_cst);
		if (peer_runs(w))
			return STEP_BUSY;
	}
	complete_send(w->x, w->req, w->pos, &o);
	return STEP_DONE;
}

/* ---- the responder's readiness, and dispatch ---- */

static bool types_match(const struct work *w)
{
	if (w->req->type == IBV_QPT_XRC_SEND)
		return w->resp->type == IBV_QPT_XRC_RECV;
	return w->req->type == w->resp->type;
}

/*
 * True if resp is the other end of this very connection and can take requests.  Both must have
 * found each other: who takes memory or a QP away waits for the processes it knows.  (UC starts
 * anew with any first packet, whatever its PSN.)
 */
static bool responder_ready(const struct work *w)
{
	const struct seg_qp *q = w->resp->qp;

	if (view_dead(&w->resp->view) || !end_receives(w->resp) || !types_match(w) ||
		w->req->qp->peer_attach != w->resp->view.attach)
		return false;
	return q->dest_qpn == w->req->qpn && q->peer_attach == w->req->view.attach &&
	       (q->rq_psn == w->req->qp->sq_psn || w->req->type == IBV_QPT_UC);
}

static bool is_in_domain(const struct end *srq, const struct end *resp)
{
	return srq->type == SEG_TYPE_XRC_SRQ && rxq_live(&srq->rx) &&
	       srq->qp->xrcd == resp->qp->xrcd;
}

/*
 * XRC: memory and receives are those of the shared receive queue that the request names.
 * STEP_DONE: it is found.
 */
static enum step find_memory(struct work *w)
{
	int rc = w->x->find_srq ? w->x->find_srq(w, w->srqn, &w->mem) : -EXDEV;

	if (!rc && is_in_domain(w->mem, w->resp))
		return STEP_DONE;
	w->mem = w->resp;
	if (rc == -EXDEV)
		return STEP_NOT_OURS;
	/* Whose death was noticed just now has no queues: he does not refuse. */
	if ((rc && rc != -ENOENT) || !responder_ready(w))
		return STEP_NO_PEER;
	return work_fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

enum step work_execute(struct work *w)
{
	if (w->length > 1ull << 31)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (op_is_local(w->op))
		return do_local(w);
	if (!responder_ready(w))
		return STEP_NO_PEER;
	if (w->plain && w->op->kind == OP_SEND) {
		cq_prefetch(&w->mem->recv_cq);
		return work_send_plain(w);
	}
	if (w->req->type == IBV_QPT_XRC_SEND) {
		enum step s = find_memory(w);

		if (s != STEP_DONE)
			return s;
	}
	switch (w->op->kind) {
	case OP_SEND:
		if (w->mem->recv_cq.cq)
			cq_prefetch(&w->mem->recv_cq);
		if (w->mem->rx.ring.slots)
			rxq_fetch_head(&w->mem->rx);
		return w->mem->rx.ring.slots && w->mem->rx.matches_tags ? tm_send(w) : work_send(w);
	case OP_WRITE:
		return do_write(w);
	case OP_READ:
		return do_read(w);
	case OP_ATOMIC:
		return do_atomic(w);
	case OP_ATOMIC_WRITE:
		return do_atomic_write(w);
	case OP_FLUSH:
		return do_flush(w);
	default:
		return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
	}
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec_op.h"

#include <string.h>

#include "base/clock.h"
#include "hca/atomic_op.h"
#include "hca/resolve.h"
#include "hca/token.h"
#include "pages/mover.h"

enum { MTU_BASE_LOG = 7, PID_TRUST_NS = 100 * NSEC_PER_MSEC, MAP_TRUST_NS = 1 };

/* Bytes to be carried: pieces of a process, or (here) of memory this process maps. */
struct payload {
	struct sgl l;
	bool here;
	bool mapped; /* here, in the arena of another process */
};

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
	w->sge = slot->sge;
	w->inline_data = NULL;
	w->length = 0;
	if (w->op->kind == OP_ATOMIC) {
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
		return w->op->kind != OP_NONE && w->op->kind <= OP_WRITE &&
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

static void count_error(struct exec *x, enum ibv_wc_status status)
{
	if (status < sizeof error_counters / sizeof *error_counters && error_counters[status])
		count_add(x, error_counters[status], 1);
}

void work_fail(struct work *w, enum ibv_wc_status status)
{
	const struct outcome o = {.status = status};

	count_error(w->x, status);
	qp_set_error(w->req);
	complete_send(w->x, w->req, w->pos, &o);
	qp_flush(w->x, w->req, true);
}

static enum step fail(struct work *w, enum ibv_wc_status status)
{
	work_fail(w, status);
	return STEP_FAILED;
}

/* The responder found the request at fault: it goes to ERR too, with an event. */
static enum step fail_both(struct work *w, enum ibv_wc_status status, enum ibv_event_type event)
{
	if (qp_set_error(w->resp)) {
		raise_qp_event(w->x, w->resp, event);
		qp_flush(w->x, w->resp, false);
	}
	return fail(w, status);
}

/* The responder's own receive is at fault: it completes in error there. */
static enum step fail_receive(struct work *w, uint32_t rq_pos, enum ibv_wc_status recv_status,
	enum ibv_wc_status send_status)
{
	const struct outcome o = {.status = recv_status};
	const struct received r = {.opcode = w->op->recv_wc, .src_qp = w->req->qpn};

	count_error(w->x, recv_status);
	qp_set_error(w->resp);
	complete_recv(w->x, w->resp, rq_pos, &o, &r);
	qp_flush(w->x, w->resp, false);
	return fail(w, send_status);
}

/* ---- moving bytes ---- */

void work_step(struct work *w)
{
	slot_step(w->x->slot, w->req->view.attach,
		w->resp ? w->resp->view.attach : w->req->view.attach);
}

struct guard {
	struct work *w;
	const struct held *held;
};

static bool still_valid(void *arg)
{
	const struct guard *g = arg;

	work_step(g->w);
	switch (held_check(g->held)) {
	case HELD_BUSY:
		g->w->busy = true;
		return false;
	case HELD_GONE:
		return false;
	case HELD_VALID:
		break;
	}
	return end_state(g->w->req) == IBV_QPS_RTS && end_receives(g->w->resp);
}

static bool is_here(const struct end *e)
{
	return e->view.pid == 0;
}

/* Is the process alive, or was it at most so long ago? */
static bool seen_alive(struct work *w, const struct view *v, uint64_t trust_ns)
{
	struct seen_alive *seen = &w->x->seen[v->attach % ALIVE_CACHE];
	uint64_t now = clock_coarse_ns();

	if (seen->attach == v->attach && now - seen->ns < trust_ns)
		return !view_dead(v);
	if (view_died(v))
		return false;
	seen->attach = v->attach;
	seen->ns = now;
	return true;
}

bool work_pid_valid(struct work *w, const struct view *v)
{
	return seen_alive(w, v, PID_TRUST_NS);
}

/*
 * The memory of a dead process takes bytes as before if it is mapped.  It is asked for each tick
 * of the coarse clock, some ms; weftd tells of a death sooner.
 */
static bool mapped_alive(struct work *w, const struct view *v)
{
	return seen_alive(w, v, MAP_TRUST_NS);
}

/* The memory of p is e's, under the regions that held has from first on: reaches it if it can. */
static void reach(const struct end *e, struct payload *p, const struct held *held, unsigned first)
{
	if (!p->here)
		p->mapped = p->here = resolve_mapped(&e->view, held, first, &p->l);
}

static enum seg_counter bytes_counter(
	const struct move *m, const struct payload *src, const struct payload *dst)
{
	if (m->pid)
		return CTR_CMA_BYTES;
	return src->mapped || dst->mapped ? CTR_MAP_BYTES : CTR_SELF_BYTES;
}

/* Runs the mover that fits from src to dst, whose memory belongs to process at_dst. */
static enum move_result carry(struct work *w, struct payload *src, const struct end *at_src,
	struct payload *dst, const struct end *at_dst, const struct held *held)
{
	struct guard g = {.w = w, .held = held};
	struct move m = {.still_valid = still_valid, .arg = &g};
	const struct view *remote = src->here ? &at_dst->view : &at_src->view;
	enum move_result r;

	m.push = src->here;
	m.pid = !src->here ? at_src->view.pid : !dst->here ? at_dst->view.pid : 0;
	if (!src->here && !dst->here)
		return MOVE_REFUSED;
	if (m.pid && !remote->reachable)
		return MOVE_REFUSED;
	if (m.pid && !work_pid_valid(w, remote))
		return MOVE_GONE;
	if (src->mapped && !mapped_alive(w, &at_src->view))
		return MOVE_GONE;
	if (dst->mapped && !mapped_alive(w, &at_dst->view))
		return MOVE_GONE;
	m.local = m.push ? &src->l : &dst->l;
	m.remote = m.push ? &dst->l : &src->l;
	r = mover_run(&m);
	w->moved += m.moved;
	count_add(w->x, bytes_counter(&m, src, dst), m.moved);
	if (m.calls)
		count_add(w->x, CTR_CMA_OPS, m.calls);
	if (r == MOVE_REFUSED)
		count_add(w->x, CTR_CMA_REFUSED, 1);
	return r;
}

/* Did the move fail on the requester's memory?  (The mover knows only local and remote.) */
static bool requester_fault(enum move_result r, bool requester_here)
{
	return r == (requester_here ? MOVE_FAULT_LOCAL : MOVE_FAULT_REMOTE);
}

/*
 * A region is changing over: the request begins anew when that is through.  Its owner may have
 * died in the middle of it.
 */
static enum step busy(struct work *w)
{
	const struct view *v = w->req->view.pid ? &w->req->view : &w->resp->view;

	w->busy = false;
	if (v->pid && !mapped_alive(w, v))
		return STEP_NO_PEER;
	count_add(w->x, CTR_MAP_BUSY, 1);
	return STEP_BUSY;
}

/* What to do when a move of an RDMA operation or of a SEND did not end well. */
static enum step move_failed(struct work *w, enum move_result r, enum ibv_wc_status remote)
{
	if (r == MOVE_GONE)
		return STEP_NO_PEER;
	if (r == MOVE_STOPPED && w->busy)
		return busy(w);
	if (r == MOVE_STOPPED) {
		if (end_state(w->req) != IBV_QPS_RTS) {
			qp_flush(w->x, w->req, true);
			return STEP_FAILED;
		}
		return end_receives(w->resp) ? fail(w, remote) : STEP_NO_PEER;
	}
	if (r == MOVE_REFUSED)
		return fail(w, IBV_WC_REM_OP_ERR);
	if (requester_fault(r, is_here(w->req)))
		return fail(w, IBV_WC_LOC_PROT_ERR);
	if (remote == IBV_WC_REM_ACCESS_ERR)
		return fail_both(w, remote, IBV_EVENT_QP_ACCESS_ERR);
	return fail(w, remote);
}

/*
 * The requester's bytes of a SEND or WRITE; held starts anew.  False: an lkey does not cover
 * them.  (Lists and held are large: they are never zeroed whole on the hot path.)
 */
static bool source(struct work *w, struct payload *p, struct held *held)
{
	held->n = 0;
	held->busy = p->mapped = false;
	sgl_reset(&p->l);
	p->here = true;
	if (w->inline_data) {
		sgl_add(&p->l, (uintptr_t)w->inline_data, w->length);
		return true;
	}
	if (w->length && w->length <= SEG_PARK_BYTES &&
		atomic_load_explicit(&w->req->qp->parked_copy, memory_order_acquire) ==
			w->pos + 1) {
		sgl_add(&p->l, (uintptr_t)w->req->park_buf, w->length);
		return true;
	}
	p->here = is_here(w->req);
	if (!resolve_sges(&w->req->view, w->req->pd, w->sge, w->num_sge, w->length, 0, &p->l, held))
		return false;
	reach(w->req, p, held, 0);
	return true;
}

void work_park_copy(struct work *w)
{
	struct held held;
	struct payload p;

	if (w->op->kind != OP_SEND || w->inline_data || !w->length || w->length > SEG_PARK_BYTES ||
		!is_here(w->req) || !source(w, &p, &held))
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

static enum step succeed(struct work *w)
{
	const struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};

	count_packets(w);
	complete_send(w->x, w->req, w->pos, &o);
	return STEP_DONE;
}

/* ---- SEND and the immediate of a WRITE ---- */

/*
 * Finds the receive that this request will consume.  STEP_DONE: *pos is it; else why not.  Only
 * the holder of the responder's rq_token may complete receives.
 */
static enum step find_receive(struct work *w, uint32_t *pos)
{
	if (!w->resp->rq)
		return STEP_RNR;
	if (!w->rq_held) {
		if (!token_take(&w->resp->qp->rq_token, w->x->owner))
			return STEP_NO_PEER; /* a flush is going on there */
		w->rq_held = true;
	}
	*pos = atomic_load_explicit(&w->resp->qp->rq_head, memory_order_relaxed);
	if (atomic_load_explicit(&end_rqe(w->resp, *pos)->posted, memory_order_acquire) != *pos + 1)
		return STEP_RNR;
	/* An RTR that turned to ERR meanwhile is seen here: its flusher waits for our token. */
	return end_receives(w->resp) ? STEP_DONE : STEP_NO_PEER;
}

/* Up to 32 SGEs of a receive, near and far ones in one array. */
static unsigned receive_sges(const struct end *e, const struct seg_rqe *r, struct seg_sge *out)
{
	unsigned n = r->num_sge < e->rq_sge_max ? r->num_sge : e->rq_sge_max;

	if (n > SGL_MAX - 1)
		n = SGL_MAX - 1;
	for (unsigned i = 0; i < n; i++)
		out[i] = i < RQ_SGE_NEAR ? r->near[i] : r->far[i - RQ_SGE_NEAR];
	return n;
}

static uint64_t sge_total(const struct seg_sge *sge, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += sge[i].length;
	return sum;
}

/* True if the payload ring lacks room up to position end; reads the owner's line only if so. */
static bool ring_full(struct seg_qp *q, uint32_t end)
{
	uint32_t head = atomic_load_explicit(&q->ring_head_seen, memory_order_relaxed);

	if (end - head <= SEG_RING_BYTES)
		return false;
	head = atomic_load_explicit(&q->ring_head, memory_order_acquire);
	atomic_store_explicit(&q->ring_head_seen, head, memory_order_relaxed);
	return end - head > SEG_RING_BYTES;
}

/* Room for len contiguous bytes of the payload ring, or NULL. */
static uint8_t *ring_room(const struct end *e, uint32_t len, uint32_t *pos)
{
	uint32_t tail = atomic_load_explicit(&e->qp->ring_tail, memory_order_relaxed);
	uint32_t at = tail % SEG_RING_BYTES;

	len = (len + CACHE_LINE - 1) & ~(CACHE_LINE - 1u);
	if (at + len > SEG_RING_BYTES)
		tail += SEG_RING_BYTES - at;
	if (ring_full(e->qp, tail + len))
		return NULL;
	*pos = tail;
	atomic_store_explicit(&e->qp->ring_tail, tail + len, memory_order_relaxed);
	prefetch_write(e->ring + (tail + len) % SEG_RING_BYTES);
	return e->ring + tail % SEG_RING_BYTES;
}

/*
 * Puts the payload where the receive will find it, by the cheapest way.  dst's regions are those
 * of held from n_src on.
 */
static enum move_result deliver(struct work *w, struct payload *src, struct seg_rqe *rqe,
	struct payload *dst, struct received *r, struct held *held, unsigned n_src)
{
	uint8_t *room;

	r->where = RQ_DIRECT;
	if (!w->length)
		return MOVE_OK;
	if (src->here && !dst->here && w->length <= RQ_INLINE_MAX) {
		sgl_gather(&src->l, rqe->payload);
		r->where = RQ_IN_SLOT;
		count_add(w->x, CTR_SEND_INLINE, 1);
		return MOVE_OK;
	}
	if (src->here && !dst->here && w->length <= SEG_RING_MSG_MAX) {
		room = ring_room(w->resp, w->length, &r->ring_pos);
		if (room) {
			sgl_gather(&src->l, room);
			r->where = RQ_IN_RING;
			count_add(w->x, CTR_SEND_RING, 1);
			return MOVE_OK;
		}
	}
	count_add(w->x, CTR_SEND_MOVER, 1);
	reach(w->resp, dst, held, n_src);
	return carry(w, src, w->req, dst, w->resp, held);
}

static void fill_received(const struct work *w, struct received *r)
{
	r->opcode = w->op->recv_wc;
	r->wc_flags = w->op->has_imm ? IBV_WC_WITH_IMM : 0;
	r->imm = w->imm;
	r->src_qp = w->req->qpn;
	r->solicited = w->flags & IBV_SEND_SOLICITED;
}

/* The first message of a connection may reach a responder that is still in RTR. */
static void note_established(struct work *w, uint32_t rq_pos)
{
	if (rq_pos == w->resp->qp->rq_base && end_state(w->resp) == IBV_QPS_RTR)
		raise_qp_event(w->x, w->resp, IBV_EVENT_COMM_EST);
}

static enum step do_send(struct work *w)
{
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct received r = {.where = RQ_DIRECT};
	struct held held;
	struct seg_sge sge[SGL_MAX];
	struct payload src, dst;
	struct seg_rqe *rqe;
	enum move_result moved;
	enum step s;
	unsigned n, n_src;
	uint32_t pos;

	cq_prefetch(&w->resp->recv_cq);
	if (!source(w, &src, &held))
		return fail(w, IBV_WC_LOC_PROT_ERR);
	s = find_receive(w, &pos);
	if (s != STEP_DONE)
		return s;
	rqe = end_rqe(w->resp, pos);
	prefetch_write(&rqe->done);
	prefetch_read(end_rqe(w->resp, pos + 1));
	prefetch_write(&end_rqe(w->resp, pos + 1)->done);
	n = receive_sges(w->resp, rqe, sge);
	if (w->length > sge_total(sge, n))
		return fail_receive(w, pos, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
	dst.here = is_here(w->resp);
	dst.mapped = false;
	n_src = held.n;
	sgl_reset(&dst.l);
	if (!resolve_sges(&w->resp->view, w->resp->pd, sge, n, w->length, IBV_ACCESS_LOCAL_WRITE,
		    &dst.l, &held))
		return fail_receive(w, pos, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	if (held.busy)
		return busy(w);
	moved = deliver(w, &src, rqe, &dst, &r, &held, n_src);
	if (moved == MOVE_FAULT_LOCAL || moved == MOVE_FAULT_REMOTE) {
		bool ours = requester_fault(moved, src.here);

		return ours ? fail(w, IBV_WC_LOC_PROT_ERR)
			    : fail_receive(w, pos, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	}
	if (moved != MOVE_OK)
		return move_failed(w, moved, IBV_WC_REM_OP_ERR);
	fill_received(w, &r);
	note_established(w, pos);
	complete_recv(w->x, w->resp, pos, &o, &r);
	return succeed(w);
}

/* ---- RDMA ---- */

/* For the owner, who learns whether mapping the region paid.  No write once it did. */
static void note_use(struct seg_mr *mr)
{
	uint32_t ops = atomic_load_explicit(&mr->ops, memory_order_relaxed);

	if (ops < MR_OPS_ENOUGH)
		atomic_store_explicit(&mr->ops, ops + 1, memory_order_relaxed);
}

/* The responder's side of an RDMA operation: the rkey and the QP must both allow it. */
static bool remote_range(struct work *w, uint64_t len, struct payload *p, struct held *held)
{
	unsigned first = held->n;

	sgl_reset(&p->l);
	p->here = is_here(w->resp);
	p->mapped = false;
	if (!(w->resp->qp->access & w->op->remote_access))
		return false;
	if (!len)
		return true;
	if (!resolve(&w->resp->view, w->resp->pd, w->rkey, w->raddr, len, w->op->remote_access,
		    &p->l, held))
		return false;
	if (held->mr[first].share == MR_MAPPED)
		note_use(held->mr[first].mr);
	reach(w->resp, p, held, first);
	return true;
}

static enum step do_write(struct work *w)
{
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct held held;
	struct payload src, dst;
	enum move_result moved;
	uint32_t pos = 0;

	if (!source(w, &src, &held))
		return fail(w, IBV_WC_LOC_PROT_ERR);
	if (!remote_range(w, w->length, &dst, &held))
		return fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	if (w->op->takes_recv) {
		enum step s = find_receive(w, &pos);

		if (s != STEP_DONE)
			return s;
	}
	if (held.busy)
		return busy(w);
	moved = carry(w, &src, w->req, &dst, w->resp, &held);
	if (moved != MOVE_OK)
		return move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	if (w->op->takes_recv) {
		struct received r = {.where = RQ_DIRECT};

		fill_received(w, &r);
		note_established(w, pos);
		complete_recv(w->x, w->resp, pos, &o, &r);
	}
	return succeed(w);
}

/* The requester's buffer of a READ or an atomic; false: an lkey does not allow it. */
static bool sink(struct work *w, struct payload *p, struct held *held)
{
	held->n = 0;
	held->busy = p->mapped = false;
	sgl_reset(&p->l);
	p->here = is_here(w->req);
	if (!resolve_sges(&w->req->view, w->req->pd, w->sge, w->num_sge, w->length,
		    IBV_ACCESS_LOCAL_WRITE, &p->l, held))
		return false;
	reach(w->req, p, held, 0);
	return true;
}

/* READs and atomics need resources that both ends agreed on. */
static bool no_rd_atomic(struct work *w, enum step *s)
{
	if (!w->req->qp->max_rd_atomic) {
		*s = fail(w, IBV_WC_LOC_QP_OP_ERR);
		return true;
	}
	if (!w->resp->qp->max_dest_rd_atomic) {
		*s = fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		return true;
	}
	return false;
}

static enum step do_read(struct work *w)
{
	struct held held;
	struct payload src, dst;
	enum move_result moved;
	enum step s;

	if (!sink(w, &dst, &held))
		return fail(w, IBV_WC_LOC_PROT_ERR);
	if (no_rd_atomic(w, &s))
		return s;
	if (!remote_range(w, w->length, &src, &held))
		return fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	if (held.busy)
		return busy(w);
	moved = carry(w, &src, w->resp, &dst, w->req, &held);
	if (moved != MOVE_OK)
		return move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	return succeed(w);
}

/*
 * In a mapped region, where everybody else uses the CPU's atomics too: never by the token, even
 * if it cannot be reached from here.
 */
static enum move_result mapped_atomic(struct work *w, const struct payload *target, uint64_t *old)
{
	_Atomic uint64_t *word = target->l.v[0].iov_base;

	if (!target->here || (uintptr_t)word % sizeof *word)
		return MOVE_REFUSED;
	if (target->mapped && !mapped_alive(w, &w->resp->view))
		return MOVE_GONE;
	*old = atomic_op_mapped(w, word);
	count_add(w->x, CTR_MAP_ATOMICS, 1);
	return MOVE_OK;
}

static enum step do_atomic(struct work *w)
{
	struct held held;
	struct payload target, result, old;
	enum move_result moved;
	uint64_t before;
	enum step s;

	if (w->length != sizeof before)
		return fail(w, IBV_WC_LOC_LEN_ERR);
	if (!sink(w, &result, &held))
		return fail(w, IBV_WC_LOC_PROT_ERR);
	if (no_rd_atomic(w, &s))
		return s;
	if (w->raddr % sizeof before)
		return fail_both(w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	if (!remote_range(w, sizeof before, &target, &held))
		return fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	if (held.busy)
		return busy(w);
	if (held.mr[held.n - 1].share == MR_MAPPED) {
		moved = mapped_atomic(w, &target, &before);
	} else {
		if (!atomic_op_begin(w->x, w->resp->view.seg))
			return STEP_BUSY;
		moved = atomic_op_apply(w, (uintptr_t)target.l.v[0].iov_base, &before);
		atomic_op_end(w->x, w->resp->view.seg);
	}
	if (moved != MOVE_OK)
		return move_failed(w, moved, IBV_WC_REM_ACCESS_ERR);
	old.here = true;
	old.mapped = false;
	sgl_reset(&old.l);
	sgl_add(&old.l, (uintptr_t)&before, sizeof before);
	moved = carry(w, &old, w->resp, &result, w->req, &held);
	if (moved != MOVE_OK)
		return fail(w, IBV_WC_LOC_PROT_ERR);
	count_add(w->x, CTR_ATOMICS, 1);
	return succeed(w);
}

/* ---- the responder's readiness, and dispatch ---- */

/*
 * True if resp is the other end of this very connection and can take requests.  Both must have
 * found each other: who takes memory or a QP away waits for the processes it knows.
 */
static bool responder_ready(const struct work *w)
{
	const struct seg_qp *q = w->resp->qp;

	if (view_dead(&w->resp->view) || !end_receives(w->resp) ||
		w->req->qp->peer_attach != w->resp->view.attach)
		return false;
	return q->dest_qpn == w->req->qpn && q->peer_attach == w->req->view.attach &&
	       q->rq_psn == w->req->qp->sq_psn;
}

enum step work_execute(struct work *w)
{
	if (w->length > 1ull << 31)
		return fail(w, IBV_WC_LOC_LEN_ERR);
	if (!responder_ready(w))
		return STEP_NO_PEER;
	switch (w->op->kind) {
	case OP_SEND:
		return do_send(w);
	case OP_WRITE:
		return do_write(w);
	case OP_READ:
		return do_read(w);
	case OP_ATOMIC:
		return do_atomic(w);
	default:
		return fail(w, IBV_WC_LOC_QP_OP_ERR);
	}
}

// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/exec_send.h"

#include "hca/exec/carry.h"
#include "hca/exec/way_table.h"
#include "hca/exec/window.h"
#include "hca/seg/tm_list.h"
#include "hca/seg/token.h"

/* ---- the receive ---- */

/* The receive that send_find_receive() found is consumed. */
void send_finish_receive(struct work *w, const struct outcome *o, const struct received *r)
{
	if (!w->shared) {
		complete_recv(w->x, w->resp, w->rq_pos, o, r);
		return;
	}
	complete_shared(w->x, w->resp, w->mem, w->rx, w->rq_pos, o, r);
	rxq_fetch(w->rx, w->rq_pos + 1);
}

enum step send_finish(struct work *w, const struct outcome *o, const struct received *r)
{
	struct late_event late;
	enum step s;

	late.seg = NULL;
	w->x->late = &late;
	send_finish_receive(w, o, r);
	w->x->late = NULL;
	s = work_succeed(w);
	if (late.seg)
		complete_late(w->x, &late);
	return s;
}

void send_leave_receive(struct work *w)
{
	if (!w->shared)
		return;
	if (w->rx == &w->mem->tags)
		tm_untake(w->rx, w->rq_pos, w->x->attach);
	else
		shared_untake(w->x, w->mem, w->rq_pos);
}

/* The responder's own receive is at fault: it completes in error there. */
static enum step fail_receive(
	struct work *w, enum ibv_wc_status recv_status, enum ibv_wc_status send_status)
{
	const struct outcome o = {.status = recv_status};
	const struct received r = {.opcode = w->op->recv_wc, .src_qp = w->req->qpn};

	work_count_error(w->x, recv_status);
	qp_set_error(w->resp);
	send_finish_receive(w, &o, &r);
	qp_flush(w->x, w->resp, false);
	return work_blame(w, send_status);
}

enum step work_find_ring(struct work *w, const struct end **at)
{
	const struct end *e = *at;
	uint32_t index = e->rx.index, gen = e->rx.gen;
	bool matches_tags = e->rx.matches_tags;

	if (atomic_load_explicit(&e->rx.entry->rx.resizes, memory_order_seq_cst) & 1)
		return STEP_BUSY;
	if (e != w->mem_now)
		*w->mem_now = *e;
	if (rxq_ref_init(&w->mem_now->rx, &w->mem_now->view, index) || w->mem_now->rx.gen != gen)
		return STEP_NO_PEER;
	w->mem_now->rx.matches_tags = matches_tags; /* its list was found with the end */
	*at = w->mem_now;
	return STEP_DONE;
}

/* From a shared queue.  The QP's rq_token excludes the end of its receiving (last_wqe()). */
static enum step find_shared(struct work *w)
{
	enum step s;

	if (!rxq_in_place(&w->mem->rx)) {
		s = work_find_ring(w, &w->mem);
		if (s != STEP_DONE)
			return s;
	}
	if (!shared_take(w->x, w->mem, &w->rq_pos))
		return STEP_RNR;
	w->shared = true;
	w->rx = &w->mem->rx;
	w->rqe = &rxq_at(w->rx, w->rq_pos)->rqe;
	if (end_receives(w->resp))
		return STEP_DONE;
	send_leave_receive(w);
	return STEP_NO_PEER;
}

enum step send_hold_receives(struct work *w)
{
	if (w->rq_held)
		return STEP_DONE;
	if (!token_take(&w->resp->qp->rq_token, w->x->owner))
		return STEP_NO_PEER; /* a flush is going on there */
	w->rq_held = true;
	return STEP_DONE;
}

enum step send_find_receive(struct work *w)
{
	uint32_t pos;

	if (!w->resp->rq && !w->mem->rx.ring.slots)
		return STEP_RNR;
	if (!w->rq_held && send_hold_receives(w) != STEP_DONE)
		return STEP_NO_PEER;
	w->shared = false;
	if (w->mem->rx.ring.slots)
		return find_shared(w);
	pos = atomic_load_explicit(&w->resp->qp->rq_head, memory_order_relaxed);
	w->rq_pos = pos;
	w->rqe = end_rqe(w->resp, pos);
	if (atomic_load_explicit(&w->rqe->posted, memory_order_acquire) != pos + 1)
		return STEP_RNR;
	/* An RTR that turned to ERR meanwhile is seen here: its flusher waits for our token. */
	if (!end_receives(w->resp))
		return STEP_NO_PEER;
	prefetch_write(&w->rqe->done);
	prefetch_read(end_rqe(w->resp, pos + 1));
	prefetch_write(&end_rqe(w->resp, pos + 1)->done);
	return STEP_DONE;
}

/* The SGEs of that receive. */
unsigned receive_sges(const struct seg_rqe *r, unsigned max, struct seg_sge *out)
{
	unsigned n = r->num_sge < max ? r->num_sge : max;

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

enum ibv_wc_status receive_fits(
	const struct view *v, uint32_t pd, const struct seg_rqe *r, unsigned max, uint64_t want)
{
	struct seg_sge sge[SGL_MAX];
	unsigned n = receive_sges(r, max, sge);
	struct held held;
	struct sgl l;

	if (want > sge_total(sge, n))
		return IBV_WC_LOC_LEN_ERR;
	held.n = 0;
	held.busy = false;
	sgl_reset(&l);
	return resolve_sges(v, pd, sge, n, want, IBV_ACCESS_LOCAL_WRITE, &l, &held)
		       ? IBV_WC_SUCCESS
		       : IBV_WC_LOC_PROT_ERR;
}

uint64_t send_room(const struct work *w, struct seg_sge *room)
{
	unsigned max = w->shared ? w->rx->sge_max : w->resp->rq_sge_max;

	return sge_total(room, receive_sges(w->rqe, max, room));
}

/* Where it wants its bytes.  0, or why it cannot have them. */
static enum ibv_wc_status receive_list(struct work *w, struct payload *dst, struct held *held)
{
	struct seg_sge sge[SGL_MAX];
	unsigned max = w->shared ? w->rx->sge_max : w->resp->rq_sge_max;
	uint32_t pd = w->shared ? w->rx->pd : w->resp->pd;
	unsigned n = receive_sges(w->rqe, max, sge);

	if (w->length > sge_total(sge, n))
		return IBV_WC_LOC_LEN_ERR;
	payload_begin(dst, held);
	return resolve_sges(
		       &w->mem->view, pd, sge, n, w->length, IBV_ACCESS_LOCAL_WRITE, &dst->l, held)
		       ? IBV_WC_SUCCESS
		       : IBV_WC_LOC_PROT_ERR;
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

/* Room for the payload of a receive that its owner will copy out, or NULL. */
static uint8_t *near_room(struct work *w, struct received *r)
{
	uint8_t *room;

	if (w->length <= RQ_INLINE_MAX) {
		count_add(w->x, CTR_SEND_INLINE, 1);
		if (w->shared)
			return rxq_room(w->rx, w->rq_pos, w->length, &r->where);
		r->where = RQ_IN_SLOT;
		return w->rqe->payload;
	}
	if (w->length > SEG_RING_MSG_MAX)
		return NULL;
	r->where = RQ_IN_RING;
	room = w->shared ? rxq_room(w->rx, w->rq_pos, w->length, &r->where)
			 : ring_room(w->resp, w->length, &r->ring_pos);
	if (room)
		count_add(w->x, CTR_SEND_RING, 1);
	return room;
}

/* Puts the payload where the receive will find it, by the cheapest way. */
static enum move_result deliver(struct work *w, struct payload *src, struct payload *dst,
	struct received *r, struct held *held)
{
	uint8_t *room = NULL;

	r->where = RQ_DIRECT;
	if (!w->length)
		return MOVE_OK;
	if (src->way->here && !end_is_here(w->mem) && !way_is_direct(w, dst, held))
		room = near_room(w, r);
	if (room) {
		sgl_gather(&src->l, room);
		return MOVE_OK;
	}
	r->where = RQ_DIRECT;
	count_add(w->x, CTR_SEND_MOVER, 1);
	way_of_responder(w, dst, held);
	return carry(w, src, dst, held);
}

void send_fill_received(const struct work *w, struct received *r)
{
	r->opcode = w->op->recv_wc;
	r->wc_flags = w->op->has_imm ? IBV_WC_WITH_IMM : w->op->invalidates ? IBV_WC_WITH_INV : 0;
	r->imm = w->imm;
	r->src_qp = w->req->qpn;
	r->solicited = w->flags & IBV_SEND_SOLICITED;
}

void send_note_established(struct work *w)
{
	if (!w->shared && w->rq_pos == w->resp->qp->rq_base && end_state(w->resp) == IBV_QPS_RTR)
		raise_qp_event(w->x, w->resp, IBV_EVENT_COMM_EST);
}

/* The payload of a SEND did not get into the receive. */
static enum step send_failed(struct work *w, enum move_result moved, bool src_here)
{
	enum step s;

	if (moved == MOVE_FAULT_LOCAL || moved == MOVE_FAULT_REMOTE) {
		if (!work_requester_fault(moved, src_here))
			return fail_receive(w, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
		s = work_failed(w, IBV_WC_LOC_PROT_ERR);
	} else {
		s = work_move_failed(w, moved, IBV_WC_REM_OP_ERR);
	}
	send_leave_receive(w);
	return s;
}

bool send_place(
	struct work *w, struct payload *src, struct held *held, struct received *r, enum step *s)
{
	enum move_result moved;
	struct payload dst;
	enum ibv_wc_status status = receive_list(w, &dst, held);

	if (status) {
		*s = fail_receive(w, status,
			status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR);
		return false;
	}
	moved = deliver(w, src, &dst, r, held);
	if (moved != MOVE_OK)
		*s = send_failed(w, moved, src->way->here);
	return moved == MOVE_OK;
}

bool send_payload(struct work *w, struct received *r, enum step *s)
{
	struct payload src;
	struct held held;

	if (!work_source(w, &src, &held)) {
		*s = work_failed(w, IBV_WC_LOC_PROT_ERR);
		return false;
	}
	*s = send_find_receive(w);
	return *s == STEP_DONE && send_place(w, &src, &held, r, s);
}

enum step work_send(struct work *w)
{
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct received r = {.where = RQ_DIRECT};
	enum step s;

	if (!send_payload(w, &r, &s))
		return s;
	if (w->op->invalidates && !window_invalidate_remote(w->resp, w->imm, w->req, w->pos)) {
		s = work_fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		send_leave_receive(w);
		return s;
	}
	send_fill_received(w, &r);
	send_note_established(w);
	return send_finish(w, &o, &r);
}

/* True if the payload is in place, to be copied out by its owner. */
static bool put_plain(struct work *w, struct received *r, const void *from)
{
	uint8_t *room;

	if (!receive_fits_plain(&w->resp->view, w->resp->pd, w->rqe, w->length))
		return false;
	room = near_room(w, r);
	if (room)
		memcpy(room, from, w->length);
	return room;
}

static bool is_plain(const struct work *w)
{
	return w->length && w->length <= SEG_RING_MSG_MAX && !w->op->invalidates &&
	       atomic_load_explicit(&w->req->qp->parked_copy, memory_order_relaxed) != w->pos + 1;
}

enum step work_send_plain(struct work *w)
{
	const void *from = is_plain(w) ? work_source_plain(w) : NULL;
	const struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct received r;
	enum step s;

	if (!from)
		return work_send(w);
	s = send_find_receive(w);
	if (s != STEP_DONE)
		return s;
	r.rendezvous = false;
	r.ring_pos = 0;
	if (!put_plain(w, &r, from))
		return work_send(w);
	send_fill_received(w, &r);
	send_note_established(w);
	return send_finish(w, &o, &r);
}

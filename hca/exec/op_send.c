// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/op_send.h"

#include "hca/exec/carry.h"
#include "hca/exec/fail.h"
#include "hca/exec/range.h"
#include "hca/exec/receive.h"
#include "hca/exec/way_table.h"
#include "hca/exec/window.h"

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
			return rxq_room(w->rxq, w->rq_pos, w->length, &r->where);
		r->where = RQ_IN_SLOT;
		return w->rqe->payload;
	}
	if (w->length > SEG_RING_MSG_MAX)
		return NULL;
	r->where = RQ_IN_RING;
	room = w->shared ? rxq_room(w->rxq, w->rq_pos, w->length, &r->where)
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

/* The payload of a SEND did not get into the receive. */
static enum step send_failed(struct work *w, enum move_result moved)
{
	enum step s;

	if (moved == MOVE_FAULT_LOCAL || moved == MOVE_FAULT_REMOTE) {
		if (!work_requester_fault(moved, end_is_here(w->req)))
			return work_receive_failed(w, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
		s = work_failed(w, IBV_WC_LOC_PROT_ERR);
	} else {
		s = work_move_failed(w, moved, IBV_WC_REM_OP_ERR);
	}
	receive_leave(w);
	return s;
}

bool op_send_place(
	struct work *w, struct payload *src, struct held *held, struct received *r, enum step *s)
{
	enum move_result moved;
	struct payload dst;
	enum ibv_wc_status status = receive_range(w, &dst, held);

	if (status) {
		*s = work_receive_failed(w, status,
			status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR);
		return false;
	}
	moved = deliver(w, src, &dst, r, held);
	if (moved != MOVE_OK)
		*s = send_failed(w, moved);
	return moved == MOVE_OK;
}

bool op_send_payload(struct work *w, struct received *r, enum step *s)
{
	struct payload src;
	struct held held;

	if (!range_source(w, &src, &held)) {
		*s = work_failed(w, IBV_WC_LOC_PROT_ERR);
		return false;
	}
	*s = receive_find(w);
	return *s == STEP_DONE && op_send_place(w, &src, &held, r, s);
}

enum step op_send(struct work *w)
{
	struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct received r = {.where = RQ_DIRECT};
	enum step s;

	if (!op_send_payload(w, &r, &s))
		return s;
	if (w->op->invalidates && !window_invalidate_remote(w->resp, w->imm, w->req->qpn, w->pos)) {
		s = work_fail_both(w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		receive_leave(w);
		return s;
	}
	receive_fill(w, &r, w->req->qpn);
	receive_note_established(w);
	return receive_finish_both(w, &o, &r);
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

enum step op_send_plain(struct work *w)
{
	const void *from = is_plain(w) ? range_source_plain(w) : NULL;
	const struct outcome o = {.status = IBV_WC_SUCCESS, .byte_len = w->length};
	struct received r;
	enum step s;

	if (!from)
		return op_send(w);
	s = receive_find(w);
	if (s != STEP_DONE)
		return s;
	r.rendezvous = false;
	r.ring_pos = 0;
	if (!put_plain(w, &r, from))
		return op_send(w);
	receive_fill(w, &r, w->req->qpn);
	receive_note_established(w);
	return receive_finish_both(w, &o, &r);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "ti/xfer/rdma.h"

#include "ti/mem/pool.h"
#include "ti/xfer/post.h"

/* ---- one request ---- */

static ti_status_t claim_lead(struct conn *c, struct element *lead)
{
	if (!lead->e.num_io_bufs || !lead->e.rdma_data_desc || !pool_has_descs(lead) ||
		lead->pool->m.ti != c->m.ti)
		return TI_INVALID_PARAMETER;
	return element_claim(lead) ? TI_SUCCESS : TI_RESOURCE_BUSY;
}

/* One remote address for all, or one for each buffer. */
static bool fits(const struct element *el)
{
	return el->lead ? el->lead->e.num_io_bufs == 1 ||
				  el->lead->e.num_io_bufs == el->e.num_io_bufs
			: el->has_remote;
}

static ti_status_t claim_pair(
	struct conn *c, struct element *lead, struct element *el, enum ibv_wr_opcode opcode)
{
	ti_status_t st = lead ? claim_lead(c, lead) : TI_SUCCESS;

	if (st)
		return st;
	st = post_claim_local(c, el, c->attr.max_transfer_buffers);
	if (st) {
		if (lead)
			element_unclaim(lead);
		return st;
	}
	post_prepare(c, el, XFER_RDMA, opcode);
	el->lead = lead;
	post_options(el);
	if (lead && lead->e.msg_opt & TI_OPT_SIGNALED)
		el->wakes = true;
	if (fits(el) && el->bytes <= c->attr.max_rdma_size && el->bytes <= c->rdma_max) {
		if (opcode != IBV_WR_ATOMIC_FETCH_AND_ADD)
			post_divide(c, el);
		return TI_SUCCESS;
	}
	element_unclaim(el);
	if (lead)
		element_unclaim(lead);
	return TI_INVALID_PARAMETER;
}

ti_status_t rdma_claim(
	struct conn *c, ti_data_element_t **list, enum ibv_wr_opcode opcode, struct element **out)
{
	struct element *el = element_of(*list), *lead = NULL;
	ti_status_t st = TI_INVALID_PARAMETER;

	if (!c->rdma_max)
		return TI_INVALID_OPERATION;
	if (el && el->e.pool_type == TI_RES_POOL_RDMA) {
		lead = el;
		el = element_of(lead->e.p_next_msg);
	}
	if (el)
		st = claim_pair(c, lead, el, opcode);
	if (!st) {
		*list = el->e.p_next_msg;
		*out = el;
	}
	return st;
}

/* ---- lists ---- */

/* Elements that are claimed, in order, linked by sq_next. */
struct batch {
	struct element *first, *last;
	uint32_t n;
};

static void batch_add(struct batch *b, struct element *el)
{
	el->sq_next = NULL;
	if (b->last)
		b->last->sq_next = el;
	else
		b->first = el;
	b->last = el;
	b->n++;
}

static void batch_drop(struct batch *b)
{
	struct element *el = b->first, *next;

	for (; el; el = next) {
		next = el->sq_next;
		if (el->lead)
			element_unclaim(el->lead);
		element_unclaim(el);
	}
}

static ti_status_t claim_list(
	struct conn *c, ti_data_element_t *list, enum ibv_wr_opcode opcode, struct batch *b)
{
	ti_status_t st = list ? TI_SUCCESS : TI_INVALID_PARAMETER;
	struct element *el;

	while (list && !st) {
		st = rdma_claim(c, &list, opcode, &el);
		if (!st)
			batch_add(b, el);
	}
	return st;
}

/* The message behind the list, which waits for reads. */
static ti_status_t claim_message(struct conn *c, ti_data_element_t *msg, struct batch *b)
{
	uint32_t n;
	ti_status_t st;

	if (msg->p_next_msg)
		return TI_INVALID_PARAMETER;
	st = post_claim_messages(c, msg, XFER_SEND, &n);
	if (st)
		return st;
	((struct element *)msg)->send_flags |= IBV_SEND_FENCE;
	batch_add(b, (struct element *)msg);
	return TI_SUCCESS;
}

static bool post_batch(struct conn *c, const struct batch *b)
{
	struct element *el = b->first, *next;
	bool all = true;

	for (; el; el = next) {
		next = el->sq_next;
		all &= post_send(c, el);
	}
	return all;
}

/* ---- the operations ---- */

static bool may(const struct conn *c, enum ibv_wr_opcode opcode)
{
	return conn_state(c) == CONN_LIVE && (c->attr.reliable || opcode != IBV_WR_RDMA_READ);
}

static ti_status_t transfer(
	struct conn *c, ti_data_element_t *list, ti_data_element_t *msg, enum ibv_wr_opcode opcode)
{
	struct batch b = {0};
	ti_status_t st = may(c, opcode) ? TI_SUCCESS : TI_INVALID_OPERATION;

	if (!st)
		st = claim_list(c, list, opcode, &b);
	if (!st && msg)
		st = claim_message(c, msg, &b);
	if (!st && !post_has_room(c, b.n))
		st = TI_INSUFFICIENT_RESOURCES;
	if (st)
		batch_drop(&b);
	else if (!post_batch(c, &b) && service_has(c->m.ti, TI_TELL_PENDING))
		st = TI_PENDING;
	return st;
}

static ti_status_t start(ti_conn_handle_t h_conn, ti_data_element_t *list, ti_data_element_t *msg,
	enum ibv_wr_opcode opcode)
{
	struct conn *c = conn_get(h_conn);
	ti_status_t st;

	if (!c)
		return TI_INVALID_HANDLE;
	lock_take(&c->sq_lock);
	st = transfer(c, list, msg, opcode);
	lock_drop(&c->sq_lock);
	conn_put(c);
	return st;
}

ti_status_t op_rdma_read(ti_conn_handle_t h_conn, ti_data_element_t *p_melist)
{
	return start(h_conn, p_melist, NULL, IBV_WR_RDMA_READ);
}

ti_status_t op_rdma_write(ti_conn_handle_t h_conn, ti_data_element_t *p_melist)
{
	return start(h_conn, p_melist, NULL, IBV_WR_RDMA_WRITE);
}

/* A bundle without its message is refused; a stale handle is told first. */
static ti_status_t start_bundle(ti_conn_handle_t h_conn, ti_data_element_t *list,
	ti_data_element_t *msg, enum ibv_wr_opcode opcode)
{
	struct conn *c = msg ? NULL : conn_get(h_conn);

	if (msg)
		return start(h_conn, list, msg, opcode);
	if (!c)
		return TI_INVALID_HANDLE;
	conn_put(c);
	return TI_INVALID_PARAMETER;
}

ti_status_t op_rdma_read_send(
	ti_conn_handle_t h_conn, ti_data_element_t *p_rdma_read_list, ti_data_element_t *p_msg)
{
	return start_bundle(h_conn, p_rdma_read_list, p_msg, IBV_WR_RDMA_READ);
}

ti_status_t op_rdma_write_send(
	ti_conn_handle_t h_conn, ti_data_element_t *p_rdma_write_list, ti_data_element_t *p_msg)
{
	return start_bundle(h_conn, p_rdma_write_list, p_msg, IBV_WR_RDMA_WRITE);
}

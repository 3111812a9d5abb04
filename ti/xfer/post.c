// SPDX-License-Identifier: BSD-3-Clause
#include "ti/xfer/post.h"

#include <string.h>

#include "base/log.h"
#include "ti/mem/pool.h"
#include "ti/xfer/atomic.h"
#include "ti/xfer/break.h"
#include "ti/xfer/drain.h"

/* ---- claiming ---- */

static ti_status_t sum_buffers(struct element *el)
{
	const ti_local_data_desc_t *d = el->e.local_data_desc;
	uint64_t all = 0;

	for (uint32_t i = 0; i < el->e.num_io_bufs; i++) {
		if (d[i].byte_count > UINT32_MAX || (d[i].byte_count && !d[i].vaddr))
			return TI_INVALID_PARAMETER;
		all += d[i].byte_count;
	}
	el->bytes = all;
	return all > UINT32_MAX ? TI_INVALID_PARAMETER : TI_SUCCESS;
}

ti_status_t post_claim_local(struct conn *c, struct element *el, uint32_t max_bufs)
{
	ti_status_t st;
	uint32_t key;

	if (!el || el->e.pool_type != TI_RES_POOL_MSG || el->pool->m.ti != c->m.ti)
		return TI_INVALID_PARAMETER;
	if (!element_claim(el))
		return TI_RESOURCE_BUSY;
	if (el->pool->buffers && !pool_lkey(el->pool, c->pd, el->pool->buffers, &key, &st))
		; /* now they are registered, or cannot be */
	else if (el->e.num_io_bufs > max_bufs || !pool_has_descs(el) ||
		 el->e.oob_data_len > sizeof el->e.oob_data ||
		 (el->e.num_io_bufs && !el->e.local_data_desc))
		st = TI_INVALID_PARAMETER;
	else
		st = sum_buffers(el);
	if (st)
		element_unclaim(el);
	return st;
}

void post_unclaim(ti_data_element_t *list, uint32_t n)
{
	for (; n > 0; n--, list = list->p_next_msg)
		element_unclaim((struct element *)list);
}

void post_prepare(struct conn *c, struct element *el, enum xfer x, enum ibv_wr_opcode opcode)
{
	el->conn = c;
	el->lead = NULL;
	el->sq_next = NULL;
	el->xfer = x;
	el->opcode = opcode;
	el->wakes = true;
	el->send_flags = 0;
	el->pieces = el->to_post = 1;
	el->piece = UINT32_MAX;
	el->result = TI_SUCCESS;
	el->refused = false;
	el->buf = el->buf_done = 0;
	el->remote_done = 0;
	el->atomic32 = NULL;
}

void post_options(struct element *el)
{
	ti_msg_opt_t opt = el->e.msg_opt;

	el->send_flags = IBV_SEND_SIGNALED;
	if (opt & TI_OPT_FENCE)
		el->send_flags |= IBV_SEND_FENCE;
	if (opt & TI_OPT_SOLICITED)
		el->send_flags |= IBV_SEND_SOLICITED;
	if (opt & TI_OPT_IMMEDIATE || el->e.oob_data_len) {
		if (el->opcode == IBV_WR_SEND)
			el->opcode = IBV_WR_SEND_WITH_IMM;
		else if (el->opcode == IBV_WR_RDMA_WRITE)
			el->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	}
	el->wakes = opt & TI_OPT_SIGNALED;
}

static ti_status_t claim_message(struct conn *c, struct element *el, enum xfer x)
{
	bool out = x == XFER_SEND;
	uint32_t bufs = out ? c->attr.max_transfer_buffers : c->attr.max_recv_buffers;
	ti_status_t st = post_claim_local(c, el, bufs);

	if (st)
		return st;
	if (out && el->bytes > c->attr.max_transfer_size) {
		element_unclaim(el);
		return TI_INVALID_PARAMETER;
	}
	post_prepare(c, el, x, IBV_WR_SEND);
	if (out)
		post_options(el);
	return TI_SUCCESS;
}

ti_status_t post_claim_messages(struct conn *c, ti_data_element_t *list, enum xfer x, uint32_t *n)
{
	ti_status_t st = list ? TI_SUCCESS : TI_INVALID_PARAMETER;

	*n = 0;
	for (ti_data_element_t *e = list; e && !st; e = e->p_next_msg) {
		st = claim_message(c, element_of(e), x);
		if (!st)
			++*n;
	}
	if (st)
		post_unclaim(list, *n);
	return st;
}

/* ---- keys ---- */

uint32_t post_key(const struct conn *c, const struct element *el, const ti_local_data_desc_t *d)
{
	ti_status_t st;
	uint32_t key;

	return pool_lkey(el->pool, c->pd, d->vaddr, &key, &st) ? key : d->lkey;
}

static bool is_inline(const struct conn *c, const struct element *el)
{
	const ti_local_data_desc_t *d = el->e.local_data_desc;

	if (el->bytes > c->max_inline)
		return false;
	for (uint32_t i = 0; i < el->e.num_io_bufs; i++)
		if (!pool_owns(el->pool, d[i].vaddr, d[i].byte_count))
			return false;
	return true;
}

/* ---- pieces ---- */

static uint32_t piece_max(const struct conn *c)
{
	uint32_t piece = atomic_load_explicit(&c->m.ti->rdma_piece, memory_order_relaxed);

	return piece && piece < c->max_msg ? piece : c->max_msg;
}

/* Has each local buffer a remote address of its own? */
static bool is_scattered(const struct element *el)
{
	return el->lead && el->lead->e.num_io_bufs > 1;
}

static ti_rdma_desc_t remote_of(const struct element *el)
{
	ti_rdma_desc_t r = el->has_remote && !el->lead
				   ? el->remote
				   : el->lead->e.rdma_data_desc[is_scattered(el) ? el->buf : 0];

	r.vaddr += is_scattered(el) ? el->buf_done : el->remote_done;
	return r;
}

/*
 * Goes on by one piece: at most one buffer's, if each has its own address, else as much as a
 * request may have.  Fills sge if it is not NULL; how many.
 */
static int next_piece(const struct conn *c, struct element *el, struct ibv_sge sge[ELEMENT_BUFS])
{
	const ti_local_data_desc_t *d = el->e.local_data_desc;
	uint32_t bytes = 0;
	int n = 0;

	while (el->buf < el->e.num_io_bufs && bytes < el->piece) {
		uint64_t left = d[el->buf].byte_count - el->buf_done;
		uint32_t len = left < el->piece - bytes ? left : el->piece - bytes;

		if (len) {
			if (sge)
				sge[n] =
					(struct ibv_sge){(uintptr_t)d[el->buf].vaddr + el->buf_done,
						len, post_key(c, el, &d[el->buf])};
			n++;
		}
		bytes += len;
		el->buf_done += len;
		if (el->buf_done < d[el->buf].byte_count)
			break;
		el->buf++;
		el->buf_done = 0;
		if (is_scattered(el))
			break;
	}
	el->remote_done += bytes;
	return n;
}

void post_divide(const struct conn *c, struct element *el)
{
	struct element walk;

	el->piece = piece_max(c);
	if (el->bytes <= el->piece && !is_scattered(el))
		return;
	memcpy(&walk, el, sizeof walk);
	el->pieces = 0;
	do {
		(void)next_piece(c, &walk, NULL);
		el->pieces++;
	} while (walk.buf < walk.e.num_io_bufs);
	el->to_post = el->pieces;
}

/* ---- sending ---- */

/* The adapter sends immediate data with the last piece of a write. */
static enum ibv_wr_opcode piece_opcode(const struct element *el)
{
	return el->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && el->to_post > 1 ? IBV_WR_RDMA_WRITE
									   : el->opcode;
}

/* What the program has said to send of its bytes, and no more; all, with TI_OPT_IMMEDIATE alone. */
static uint32_t immediate(const struct element *el)
{
	uint32_t len = el->e.oob_data_len, imm = 0;

	memcpy(&imm, &el->e.oob_data, len && len < sizeof imm ? len : sizeof imm);
	return imm;
}

/* Once the adapter has the last one, el may be the program's again.  Negative errno: it refused. */
static int post_piece(struct conn *c, struct element *el)
{
	struct ibv_sge sge[ELEMENT_BUFS];
	struct ibv_send_wr wr =
				   {
					   .wr_id = (uintptr_t)el,
					   .sg_list = sge,
					   .opcode = piece_opcode(el),
					   .send_flags = el->send_flags,
				   },
			   *bad;
	int ret;

	wr.imm_data = immediate(el);
	if (el->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || el->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		atomic_fill(c, el, &wr);
	} else {
		if (el->xfer == XFER_RDMA) {
			ti_rdma_desc_t remote = remote_of(el);

			wr.wr.rdma.remote_addr = remote.vaddr;
			wr.wr.rdma.rkey = remote.rkey;
		}
		wr.num_sge = next_piece(c, el, sge);
		if (el->opcode != IBV_WR_RDMA_READ && is_inline(c, el))
			wr.send_flags |= IBV_SEND_INLINE;
	}
	el->to_post--;
	ret = -ibv_post_send(c->qp, &wr, &bad);
	if (ret)
		el->to_post++;
	return ret;
}

static bool sq_has_room(const struct conn *c)
{
	return flow_open(&c->sq) < c->attr.max_transfer_depth;
}

bool post_has_room(const struct conn *c, uint32_t n)
{
	return flow_open(&c->out) + n <= c->attr.max_transfer_depth;
}

/* Posts as many of its pieces as there is room for.  1: some are left; negative errno: refused. */
static int post_pieces(struct conn *c, struct element *el)
{
	uint32_t left = el->to_post, posted;
	int ret;

	for (; left && sq_has_room(c); left--) {
		posted = atomic_load_explicit(&c->sq.posted, memory_order_relaxed);
		/* its completion may be polled before the call returns */
		atomic_store_explicit(&c->sq.posted, posted + 1, memory_order_relaxed);
		ret = post_piece(c, el);
		if (ret) {
			atomic_store_explicit(&c->sq.posted, posted, memory_order_relaxed);
			return ret;
		}
	}
	return left > 0;
}

/* post_waiting() looks at it, as of a request that completes. */
static void wait_first(struct conn *c, struct element *el)
{
	el->sq_next = c->waiting;
	c->waiting = el;
	if (!el->sq_next)
		c->waiting_last = el;
	atomic_store_explicit(&c->backlog, true, memory_order_relaxed);
}

static void wait_last(struct conn *c, struct element *el)
{
	el->sq_next = NULL;
	if (c->waiting)
		c->waiting_last->sq_next = el;
	else
		c->waiting = el;
	c->waiting_last = el;
	atomic_store_explicit(&c->backlog, true, memory_order_relaxed);
}

/* Pieces that the adapter refused complete when post_waiting() comes to them. */
static void refuse(struct conn *c, struct element *el, int err)
{
	log_line(LOG_LVL_ERROR, "ti: the adapter refuses a request: errno %d", -err);
	el->refused = true;
	wait_first(c, el);
	conn_break(c, TI_ERROR);
}

bool post_send(struct conn *c, struct element *el)
{
	uint32_t out = atomic_load_explicit(&c->out.posted, memory_order_relaxed);
	int ret;

	atomic_store_explicit(&c->out.posted, out + 1, memory_order_relaxed);
	if (c->waiting || !sq_has_room(c)) {
		wait_last(c, el);
		return false;
	}
	ret = post_pieces(c, el);
	if (ret < 0)
		refuse(c, el, ret);
	else if (ret)
		wait_last(c, el);
	return !ret;
}

void post_again(struct conn *c, struct element *el)
{
	lock_take(&c->sq_lock);
	el->to_post = 1;
	wait_last(c, el);
	lock_drop(&c->sq_lock);
}

/* The first one that waits, with its pieces posted or refused, NULL: it waits on.  Under sq_lock.
 */
static struct element *post_first(struct conn *c)
{
	struct element *el = c->waiting;
	int ret;

	if (!el)
		return NULL;
	if (!el->refused) {
		ret = post_pieces(c, el);
		if (ret > 0)
			return NULL;
		el->refused = ret; /* not the program's yet: the queues' locks are held */
	}
	c->waiting = el->sq_next;
	if (!c->waiting)
		atomic_store_explicit(&c->backlog, false, memory_order_relaxed);
	return el;
}

void post_waiting(struct conn *c)
{
	struct element *el;

	for (;;) {
		lock_take(&c->sq_lock);
		el = post_first(c);
		lock_drop(&c->sq_lock);
		if (!el)
			return;
		if (!el->refused)
			continue;
		conn_break(c, TI_ERROR);
		el->result = TI_ERROR;
		el->pieces -= el->to_post;
		if (el->atomic32)
			atomic32_end(c, el);
		if (!el->pieces)
			drain_finish(c, el, el->result);
	}
}

/* ---- receiving ---- */

int post_recv(struct conn *c, struct element *el)
{
	uint32_t in = atomic_load_explicit(&c->in.posted, memory_order_relaxed);
	struct ibv_sge sge[ELEMENT_BUFS];
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)el, .sg_list = sge}, *bad;
	int ret;

	wr.num_sge = next_piece(c, el, sge);
	el->e.oob_data_len = 0;
	el->e.recv_byte_count = 0;
	atomic_store_explicit(&c->in.posted, in + 1, memory_order_relaxed);
	ret = -ibv_post_recv(c->qp, &wr, &bad);
	if (ret)
		atomic_store_explicit(&c->in.posted, in, memory_order_relaxed);
	return ret;
}

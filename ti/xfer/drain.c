// SPDX-License-Identifier: BSD-3-Clause
#include "ti/xfer/drain.h"

#include <string.h>

#include "base/log.h"
#include "face/allowed.h"
#include "ti/xfer/atomic.h"
#include "ti/xfer/break.h"
#include "ti/xfer/post.h"

enum { BATCH = 16 };

void drain_lock(struct conn *c)
{
	struct cq *a = c->send_cq, *b = c->recv_cq;

	if ((uintptr_t)a > (uintptr_t)b) {
		a = c->recv_cq;
		b = c->send_cq;
	}
	lock_take(&a->lock);
	if (b != a)
		lock_take(&b->lock);
}

void drain_unlock(struct conn *c)
{
	struct cq *s = c->send_cq, *r = c->recv_cq;

	lock_drop(&s->lock); /* from now on c may let go of them */
	if (r != s)
		lock_drop(&r->lock);
}

void drain_arm(struct conn *c)
{
	if (c->ibcq)
		(void)ibv_req_notify_cq(c->ibcq, 0);
}

/* ---- statuses ---- */

static ti_status_t status_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return TI_SUCCESS;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_REM_ACCESS_ERR:
		return TI_INVALID_PERMISSION;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return TI_TIMEOUT;
	case IBV_WC_WR_FLUSH_ERR:
		return TI_CANCELED;
	default:
		return TI_ERROR;
	}
}

/* ---- elements ---- */

/* Under the queues' locks alone: no other thread writes them. */
static void bump(_Atomic uint64_t *count, uint64_t n)
{
	atomic_store_explicit(
		count, atomic_load_explicit(count, memory_order_relaxed) + n, memory_order_relaxed);
}

static void bump32(_Atomic uint32_t *count)
{
	atomic_store_explicit(
		count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_release);
}

static void count(struct conn *c, const struct element *el, ti_status_t status)
{
	if (status) {
		bump(&c->counts.errors, 1);
		return;
	}
	bump(&c->counts.elements[el->xfer], 1);
	bump(&c->counts.bytes[el->xfer], el->xfer == XFER_RECV ? el->e.recv_byte_count : el->bytes);
}

static void enqueue(struct conn *c, enum xfer x, ti_data_element_t *e, ti_status_t status)
{
	struct cq *cq = drain_queue(c, x);
	bool waits = drain_callback(c, x) && c->attr.auto_cq_rearm;

	e->status = status;
	elements_add(waits ? &c->ready[x] : &cq->done, e);
	cq->count++;
}

void drain_finish(struct conn *c, struct element *el, ti_status_t status)
{
	enum xfer x = el->xfer;

	count(c, el, status);
	if (el->wakes || status)
		c->wake[x] = true;
	if (el->lead)
		enqueue(c, x, &el->lead->e, status);
	enqueue(c, x, &el->e, status);
	bump32(x == XFER_RECV ? &c->in.done : &c->out.done);
	if (drain_queue(c, x)->count > drain_queue(c, x)->max)
		conn_break(c, TI_CQ_OVERRUN_ERROR);
}

enum kind { KIND_MESSAGE, KIND_WRITE, KINDS };

/*
 * What completed a receive.  Of a write with immediate data that are all that it brings: its bytes
 * are elsewhere, and none of them in the element's buffers.
 */
static ti_status_t fill_received(struct conn *c, struct element *el, const struct ibv_wc *wc)
{
	const struct allowed kinds[KINDS] = {
		[KIND_MESSAGE] = {.opcode = IBV_WC_RECV,
			.imm = ALLOWED_ANY_IMM,
			.max_bytes = el->bytes},
		[KIND_WRITE] = {.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
			.imm = ALLOWED_ANY_IMM,
			.max_bytes = UINT32_MAX},
	};
	int kind = allowed_kind(kinds, KINDS, wc);

	if (kind < 0) {
		allowed_breach(c->pd->verbs);
		log_line(LOG_LVL_INFO, "ti: connection %p: %s", (void *)c->m.obj.handle,
			allowed_not(kinds, KINDS, wc));
		conn_break(c, TI_ERROR);
		return TI_ERROR;
	}
	if (kind == KIND_MESSAGE)
		el->e.recv_byte_count = wc->byte_len;
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		memcpy(&el->e.oob_data, &wc->imm_data, sizeof el->e.oob_data);
		el->e.oob_data_len = sizeof el->e.oob_data;
	}
	return TI_SUCCESS;
}

static void take_received(struct conn *c, struct element *el, const struct ibv_wc *wc)
{
	ti_status_t st = status_of(wc->status);

	drain_finish(c, el, st ? st : fill_received(c, el, wc));
}

static void take_sent(struct conn *c, struct element *el, const struct ibv_wc *wc)
{
	bump32(&c->sq.done);
	if (wc->status && !el->result)
		el->result = status_of(wc->status);
	if (el->atomic32 && atomic32_step(c, el))
		return;
	if (--el->pieces == 0)
		drain_finish(c, el, el->result);
}

static void take(struct conn *c, const struct ibv_wc *wc)
{
	struct element *el = (struct element *)(uintptr_t)wc->wr_id;

	if (wc->status && wc->status != IBV_WC_WR_FLUSH_ERR)
		conn_break(c, status_of(wc->status));
	if (!el)
		return; /* conn_break()'s own */
	if (el->xfer == XFER_RECV)
		take_received(c, el, wc);
	else
		take_sent(c, el, wc);
}

int drain(struct conn *c, int max)
{
	struct ibv_wc wc[BATCH];
	int all = 0, n;

	if (!c->ibcq)
		return 0;
	do {
		n = ibv_poll_cq(c->ibcq, BATCH, wc);
		for (int i = 0; i < n; i++)
			take(c, &wc[i]);
		all += n > 0 ? n : 0;
	} while (n == BATCH && all < max);
	if (n < 0)
		conn_break(c, TI_CQ_ERROR);
	if (atomic_load_explicit(&c->backlog, memory_order_relaxed))
		post_waiting(c);
	return all;
}

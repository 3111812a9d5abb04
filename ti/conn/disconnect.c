// SPDX-License-Identifier: BSD-3-Clause
/* How connections end. */
#include "ti/conn/disconnect.h"

#include "ti/conn/conn.h"
#include "ti/conn/request.h"
#include "ti/core/fork.h"
#include "ti/core/trace.h"
#include "ti/xfer/atomic.h"
#include "ti/xfer/break.h"
#include "ti/xfer/comp.h"
#include "ti/xfer/drain.h"
#include "ti/xfer/qp.h"

/* ---- the end ---- */

static void unlist(struct conn *c, struct cq *cq, uint64_t depth)
{
	struct conn **at = &cq->conns;

	while (*at != c)
		at = &(*at)->next_of[(*at)->send_cq != cq];
	*at = c->next_of[c->send_cq != cq];
	cq->depth -= depth;
}

static void unbind_queues(struct conn *c)
{
	uint32_t sends = c->attr.max_transfer_depth, recvs = c->attr.max_recv_depth;
	struct cq *cq;

	if (!c->bound)
		return;
	drain_lock(c);
	for (enum xfer x = 0; x < XFERS;
		x++) { /* nobody calls back any more: they can be polled for */
		cq = drain_queue(c, x);
		elements_move(&cq->done, &c->ready[x]);
	}
	if (c->send_cq == c->recv_cq) {
		unlist(c, c->send_cq, (uint64_t)sends + recvs);
	} else {
		unlist(c, c->send_cq, sends);
		unlist(c, c->recv_cq, recvs);
	}
	drain_unlock(c);
}

/* The last one that has the handle's reference. */
static void run_finish(struct job *job)
{
	struct conn *c = CONN_OF(job, finish_job);
	unsigned forks = fork_count();
	struct rdma_cm_id *id;

	unbind_queues(c);
	pthread_mutex_lock(&c->lock);
	id = c->id;
	c->id = NULL;
	pthread_mutex_unlock(&c->lock);
	(void)system_block(); /* for callbacks of transfers, and the reader of events */
	if (id)
		(void)rdma_destroy_id(id);
	qp_end(c);
	system_unblock();
	conn_clear_due(c);
	atomics_free(c);
	pthread_mutex_lock(&c->lock);
	conn_let_go(c); /* who is told may destroy them */
	pthread_mutex_unlock(&c->lock);
	log_line(LOG_LVL_INFO, "ti: connection %p has ended", (void *)c->m.obj.handle);
	if (c->gone_cb)
		c->gone_cb(c->gone_context);
	fork_called_back(forks);
	service_unstay(c->m.ti);
	conn_put(c);
}

/* ---- closing ---- */

/* After that nothing more is posted.  Under lock; what the state was. */
static enum conn_state begin(struct conn *c)
{
	enum conn_state before;

	if (conn_state(c) == CONN_CONNECTING || conn_state(c) == CONN_ASKED)
		c->result = TI_CANCELED;
	before = (enum conn_state)atomic_exchange_explicit(
		&c->state, CONN_CLOSING, memory_order_acq_rel);
	pthread_cond_broadcast(&c->changed);
	lock_take(&c->sq_lock);
	lock_drop(&c->sq_lock);
	lock_take(&c->rq_lock);
	lock_drop(&c->rq_lock);
	return before;
}

/* The peer hears of it. */
static void tell_peer(struct conn *c, enum conn_state before)
{
	if (before == CONN_LIVE || before == CONN_BROKEN)
		(void)rdma_disconnect(c->id);
	else if (before == CONN_ASKED)
		(void)rdma_reject(c->id, NULL, 0);
}

/* For want of the thread that would hear of it. */
static void flush_here(struct conn *c)
{
	(void)system_block();
	comp_flush(c);
	system_unblock();
}

static void run_close(struct job *job)
{
	struct conn *c = CONN_OF(job, close_job);
	enum conn_state before;
	bool later;

	pthread_mutex_lock(&c->lock);
	before = begin(c);
	if (before == CONN_ACCEPTING)
		c->result = TI_CANCELED;
	later = c->accepting;
	c->close_later = later;
	if (before == CONN_CONNECTING)
		conn_tell(c);
	pthread_mutex_unlock(&c->lock);
	tell_peer(c, before);
	if (later)
		return;
	c->finish_job.run = run_finish;
	if (c->bound && !c->mute && !comp_hears(c))
		flush_here(c);
	atomic_store_explicit(&c->may_finish, true, memory_order_release);
	/* an accept() that failed has brought all back itself */
	if (!c->bound || c->mute || !conn_flush(c))
		conn_finish(c);
}

void conn_end(struct conn *c)
{
	c->close_job.run = run_close;
	system_post(&c->close_job);
}

bool conn_close(struct conn *c, ti_context_cb_t cb, void *context)
{
	if (!service_leave(&c->m))
		return false;
	c->gone_cb = cb;
	c->gone_context = context;
	conn_end(c);
	return true;
}

ti_status_t op_disconnect(ti_conn_handle_t h_conn, ti_context_cb_t pfn_cb, void *p_context)
{
	struct conn *c = conn_get(h_conn);
	bool ours;

	if (!c)
		return TI_INVALID_HANDLE;
	ours = conn_close(c, pfn_cb, p_context);
	conn_put(c);
	return ours ? TI_SUCCESS : TI_INVALID_HANDLE;
}

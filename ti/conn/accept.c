// SPDX-License-Identifier: BSD-3-Clause
/* accept() and reject(). */
#include "ti/conn/accept.h"

#include <string.h>

#include "ti/conn/conn.h"
#include "ti/conn/disconnect.h"
#include "ti/core/fork.h"
#include "ti/core/trace.h"
#include "ti/xfer/break.h"
#include "ti/xfer/comp.h"
#include "ti/xfer/drain.h"
#include "ti/xfer/give_back.h"
#include "ti/xfer/msg.h"
#include "ti/xfer/qp.h"

enum { RNR_FOREVER = 7 };

/* ---- queues ---- */

/* The queue that conn_info and comp_info name, with a reference; NULL: none, or two. */
static struct cq *choose(struct conn *c, struct cq *earlier, ti_cq_handle_t h)
{
	struct cq *cq = h ? cq_get(c->m.ti, h) : NULL;

	if (h ? !cq : !earlier)
		return NULL;
	if (!h) {
		object_hold(&earlier->m.obj);
		return earlier;
	}
	if (earlier && cq != earlier) {
		object_put(&cq->m.obj);
		return NULL;
	}
	return cq;
}

/* Both or none.  False: one was destroyed.  Under lock. */
static bool use_queues(struct conn *c, struct cq *s, struct cq *r)
{
	if (!cq_use(s))
		return false;
	if (!cq_use(r)) {
		cq_unuse(s);
		object_put(&s->m.obj);
		return false;
	}
	c->send_cq = s;
	c->recv_cq = r;
	c->uses_queues = true;
	return true;
}

/* Under lock.  False: the program named none, or two different ones. */
static bool choose_queues(struct conn *c, const ti_comp_info_t *comp)
{
	struct cq *s = choose(c, c->named_send, comp->h_send_cq);
	struct cq *r = choose(c, c->named_recv, comp->h_recv_cq);
	bool ok = s && r && use_queues(c, s, r);

	if (s)
		object_put(&s->m.obj);
	if (r)
		object_put(&r->m.obj);
	return ok;
}

static void list_conn(struct conn *c, struct cq *cq, int which, uint64_t depth)
{
	c->next_of[which] = cq->conns;
	cq->conns = c;
	cq->depth += depth;
	cq->armed = true;
}

/* From now on completions are seen; the queues are armed. */
static void bind_queues(struct conn *c, const ti_comp_info_t *comp, uint32_t max_rdma_size)
{
	uint32_t sends = c->attr.max_transfer_depth, recvs = c->attr.max_recv_depth;

	c->comp = *comp;
	c->rdma_max = max_rdma_size;
	drain_lock(c);
	c->bound = true;
	if (c->send_cq == c->recv_cq) {
		list_conn(c, c->send_cq, 0, (uint64_t)sends + recvs);
	} else {
		list_conn(c, c->send_cq, 0, sends);
		list_conn(c, c->recv_cq, 1, recvs);
	}
	if (conn_calls_back(c) || cq_watched(c->send_cq) || cq_watched(c->recv_cq))
		drain_arm(c);
	drain_unlock(c);
}

/* ---- the two sides; under lock ---- */

/* The peer's answer is there; this one completes the handshake. */
static ti_status_t establish(struct conn *c)
{
	if (rdma_establish(c->id))
		return TI_ERROR;
	conn_set_state(c, CONN_LIVE);
	return TI_SUCCESS;
}

/* Has it other data than those that came?  Programs write over these, too. */
static bool is_edited(const struct conn *c, const ti_conn_request_t *req)
{
	return req->private_data_len &&
	       (req->private_data != c->priv_in || req->private_data_len != c->priv_in_len ||
		       memcmp(c->priv_in, c->priv_came, c->priv_in_len) != 0);
}

/* READs at a time: no more than this side was made for, and the peer asks for. */
static uint8_t granted(const struct conn *c, uint8_t asked)
{
	if (!c->attr.reliable)
		return 0;
	return asked < c->rdma_depth ? asked : c->rdma_depth;
}

static ti_status_t answer(struct conn *c, const ti_conn_request_t *req)
{
	bool edited = is_edited(c, req);
	struct rdma_conn_param p = {
		.private_data = edited ? req->private_data : c->priv_out,
		.private_data_len = edited ? req->private_data_len : c->priv_out_len,
		.responder_resources = granted(c, c->peer_reads),
		.initiator_depth = granted(c, c->peer_serves),
		.flow_control = 1,
		.rnr_retry_count = RNR_FOREVER,
		.qp_num = c->qp->qp_num,
	};

	if (rdma_accept(c->id, &p))
		return TI_ERROR;
	while (conn_state(c) == CONN_ACCEPTING)
		pthread_cond_wait(&c->changed, &c->lock);
	return c->result;
}

static ti_status_t make_ready(struct conn *c, const ti_comp_info_t *comp, uint32_t max_rdma_size,
	ti_data_element_t *list, bool *posted)
{
	ti_status_t st = c->qp ? TI_SUCCESS : qp_make(c);

	if (!st)
		st = qp_to_init(c);
	if (st)
		return st;
	bind_queues(c, comp, max_rdma_size);
	if (list)
		st = msg_post_first(c, list, posted);
	return st ? st : qp_to_ready(c);
}

static ti_status_t connect_both(struct conn *c, const ti_conn_request_t *req)
{
	ti_status_t st;

	if (c->active)
		return establish(c);
	st = system_block() ? TI_INSUFFICIENT_RESOURCES : answer(c, req);
	system_unblock();
	return st;
}

/* ---- the operation ---- */

static ti_status_t check_state(const struct conn *c)
{
	switch (conn_state(c)) {
	case CONN_ASKED:
		return TI_SUCCESS;
	case CONN_FAILED:
		return c->result;
	default:
		return TI_INVALID_OPERATION;
	}
}

static ti_status_t check(struct conn *c, const ti_conn_request_t *req, const ti_comp_info_t *comp)
{
	ti_status_t st = service_ends(c->m.ti) ? TI_INVALID_HANDLE : check_state(c);

	if (st)
		return st;
	if (req->private_data_len && (!req->private_data || req->private_data_len > PRIV_REP_MAX) &&
		!c->active)
		return TI_INVALID_PARAMETER;
	return choose_queues(c, comp) ? TI_SUCCESS : TI_INVALID_PARAMETER;
}

/* A connection that was begun and failed is good for reject() and disconnect() alone. */
static void failed(struct conn *c, ti_status_t st)
{
	if (conn_state(c) == CONN_ACCEPTING) {
		c->result = st;
		conn_set_state(c, CONN_FAILED);
	}
}

/* Under lock.  *posted: the elements are the library's. */
static ti_status_t accept_conn(struct conn *c, ti_conn_request_t *req, uint32_t max_rdma_size,
	const ti_comp_info_t *comp, ti_data_element_t *list, bool *posted)
{
	ti_status_t st = check(c, req, comp);

	if (st)
		return st;
	c->accepting = true;
	conn_set_state(c, CONN_ACCEPTING);
	st = make_ready(c, comp, max_rdma_size, list, posted);
	if (!st)
		st = connect_both(c, req);
	if (st)
		failed(c, st);
	else
		conn_clear_due(c);
	if (!st)
		log_line(LOG_LVL_INFO, "ti: connection %p is established", (void *)c->m.obj.handle);
	return st;
}

/* All has come back, if it failed: queues can be destroyed.  What disconnect() left to it. */
static void leave(struct conn *c, bool failed)
{
	pthread_mutex_lock(&c->lock);
	if (failed)
		conn_free_queues(c);
	c->accepting = false;
	if (c->close_later)
		system_post(&c->close_job);
	pthread_mutex_unlock(&c->lock);
}

ti_status_t op_accept(ti_conn_request_t *p_conn_req, uint32_t max_rdma_size, ti_comp_info_t *p_comp,
	ti_data_element_t *p_recv_mlist)
{
	struct conn *c;
	bool posted = false, mine = false;
	unsigned forks = fork_count();
	ti_status_t st = TI_INVALID_HANDLE;

	if (!p_conn_req || !p_comp)
		return TI_INVALID_PARAMETER;
	c = conn_get(p_conn_req->conn_handle);
	if (c) {
		pthread_mutex_lock(&c->lock);
		conn_check_time(c);
		mine = conn_state(c) == CONN_ASKED;
		st = accept_conn(c, p_conn_req, max_rdma_size, p_comp, p_recv_mlist, &posted);
		mine &= c->accepting;
		pthread_mutex_unlock(&c->lock);
		if (st && posted)
			comp_flush(c); /* first: the samples destroy the pool next */
	}
	if (st && !posted && p_recv_mlist)
		st = give_back(c, p_comp, p_recv_mlist, st);
	if (mine && forks == fork_count())
		leave(c, st != TI_SUCCESS);
	if (c)
		conn_put(c);
	return st;
}

/* ---- reject() ---- */

/* Data that came from the peer, unchanged in length, may be more than a rejection carries. */
static ti_status_t reject_conn(struct conn *c, const ti_conn_request_t *req)
{
	uint32_t len = req->private_data ? req->private_data_len : 0;

	if (len > PRIV_REJ_MAX && req->private_data == c->priv_in)
		len = PRIV_REJ_MAX;
	if (len > PRIV_REJ_MAX)
		return TI_INVALID_PARAMETER;
	if (rdma_reject(c->id, req->private_data, len))
		return TI_ERROR;
	c->result = TI_REJECTED;
	conn_set_state(c, CONN_FAILED);
	return TI_SUCCESS;
}

ti_status_t op_reject(ti_conn_request_t *p_conn_req)
{
	struct conn *c;
	ti_status_t st;

	if (!p_conn_req)
		return TI_INVALID_PARAMETER;
	c = conn_get(p_conn_req->conn_handle);
	if (!c)
		return TI_INVALID_HANDLE;
	pthread_mutex_lock(&c->lock);
	conn_check_time(c);
	st = check_state(c);
	if (conn_state(c) == CONN_ASKED)
		st = reject_conn(c, p_conn_req);
	else if (conn_state(c) == CONN_FAILED && st != TI_TIMEOUT)
		st = TI_SUCCESS; /* there is nobody to tell any more */
	pthread_mutex_unlock(&c->lock);
	if (st == TI_SUCCESS || st == TI_TIMEOUT) {
		(void)conn_close(c, NULL, NULL);
		p_conn_req->conn_handle = NULL;
	}
	conn_put(c);
	return st;
}

// SPDX-License-Identifier: BSD-3-Clause
/* Connections as objects, their states and deadlines. */
#include "ti/conn/conn.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ti/conn/cm.h"
#include "ti/conn/request.h"
#include "ti/xfer/qp.h"

void conn_free_queues(struct conn *c)
{
	if (!c->uses_queues)
		return;
	cq_unuse(c->send_cq);
	cq_unuse(c->recv_cq);
	c->uses_queues = false;
}

static void put_queue(struct cq **cq)
{
	if (*cq)
		object_put(&(*cq)->m.obj);
	*cq = NULL;
}

void conn_let_go(struct conn *c)
{
	conn_free_queues(c);
	put_queue(&c->send_cq);
	put_queue(&c->recv_cq);
	put_queue(&c->named_send);
	put_queue(&c->named_recv);
	if (c->pd)
		pd_unuse(c->pd);
	c->pd = NULL;
}

/* What is left when everything below it is gone. */
static void dispose(struct conn *c)
{
	conn_let_go(c);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void destroy(struct object *o)
{
	struct conn *c = (struct conn *)o;

	member_end(&c->m);
	dispose(c);
}

static void init_locks(struct conn *c)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static bool copy_info(struct conn *c, const ti_conn_info_t *info)
{
	if (info->private_data_len > sizeof c->priv_out ||
		(info->private_data_len && !info->private_data) ||
		info->private_data_offset + info->private_data_offset_len > info->private_data_len)
		return false;
	c->request_cb = info->conn_request_cb;
	c->context = info->context;
	c->priv_out_len = info->private_data_len;
	c->offset = info->private_data_offset;
	c->offset_len = info->private_data_offset_len;
	if (c->priv_out_len)
		memcpy(c->priv_out, info->private_data, c->priv_out_len);
	return true;
}

static struct cq *hold_queue(struct cq *cq)
{
	if (cq)
		object_hold(&cq->m.obj);
	return cq;
}

/* Queues are bound by accept() alone.  False: the domain was destroyed. */
static bool use_parts(struct conn *c, const struct conn_parts *parts)
{
	if (!pd_use(parts->pd))
		return false;
	c->pd = parts->pd;
	c->named_send = hold_queue(parts->send_cq);
	c->named_recv = hold_queue(parts->recv_cq);
	return true;
}

ti_status_t conn_new(const struct conn_parts *parts, const ti_conn_attr_t *attr,
	const ti_conn_info_t *info, struct conn **out)
{
	struct conn *c = calloc(1, sizeof *c);
	ti_status_t st = TI_INVALID_PARAMETER;

	if (!c)
		return TI_INSUFFICIENT_MEMORY;
	c->attr = *attr;
	c->request = &c->own_request;
	if (use_parts(c, parts) && info->conn_request_cb && copy_info(c, info))
		st = qp_settle(c);
	if (st) {
		conn_let_go(c);
		free(c);
		return st;
	}
	init_locks(c);
	pthread_mutex_lock(&c->lock);
	st = service_join(parts->ti, &c->m, HANDLE_CONN, destroy);
	if (st) {
		pthread_mutex_unlock(&c->lock);
		dispose(c);
		return st;
	}
	*out = c;
	return TI_SUCCESS;
}

void conn_set_state(struct conn *c, enum conn_state state)
{
	atomic_store_explicit(&c->state, state, memory_order_release);
	pthread_cond_broadcast(&c->changed);
}

/* ---- deadlines ---- */

void conn_set_due(struct conn *c)
{
	uint64_t ms = (uint64_t)c->attr.connect_request_timeout * c->attr.connect_request_retries;
	uint64_t now = clock_ns();

	/* what the clock does not reach is never, too */
	if (c->attr.connect_request_timeout != TI_NEVER && ms <= (UINT64_MAX - now) / NSEC_PER_MSEC)
		cm_set_deadline(&c->due, now + ms * NSEC_PER_MSEC);
}

void conn_clear_due(struct conn *c)
{
	cm_clear_deadline(&c->due);
}

/* What the deadline was is written under lock alone; 0: there is none. */
void conn_check_time(struct conn *c)
{
	if (conn_state(c) != CONN_ASKED || !c->due.when || clock_ns() < c->due.when)
		return;
	c->result = TI_TIMEOUT;
	conn_set_state(c, CONN_FAILED);
}

void conn_expired(struct conn *c)
{
	conn_fail(c, TI_TIMEOUT);
}

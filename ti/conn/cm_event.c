// SPDX-License-Identifier: BSD-3-Clause
/* What rdma_cm tells, and what becomes of it. */
#include "ti/conn/cm_event.h"

#include <errno.h>
#include <string.h>

#include "ti/conn/conn.h"
#include "ti/conn/connect.h"
#include "ti/conn/request.h"
#include "ti/core/trace.h"
#include "ti/xfer/break.h"

enum { ROUTE_MS = 2000, RNR_FOREVER = 7 };

static void keep_private(struct conn *c, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *p = &event->param.conn;

	c->priv_in_len = p->private_data ? p->private_data_len : 0;
	if (!c->priv_in_len)
		return;
	memcpy(c->priv_in, p->private_data, c->priv_in_len);
	memcpy(c->priv_came, p->private_data, c->priv_in_len);
}

/* ---- the active side ---- */

/* Nobody has ended it, nor its service.  Under lock. */
static bool connects(const struct conn *c)
{
	return conn_state(c) == CONN_CONNECTING && !service_ends(c->m.ti);
}

static void resolved(struct conn *c)
{
	bool ok;

	pthread_mutex_lock(&c->lock);
	ok = !connects(c) || (c->id->verbs == c->pd->verbs && !rdma_resolve_route(c->id, ROUTE_MS));
	pthread_mutex_unlock(&c->lock);
	if (!ok)
		conn_fail(c, TI_ERROR);
}

static void ask(struct conn *c)
{
	struct rdma_conn_param p = {
		.private_data = c->priv_out_len ? c->priv_out : NULL,
		.private_data_len = c->priv_out_len,
		.responder_resources = c->attr.reliable ? c->rdma_depth : 0,
		.initiator_depth = c->attr.reliable ? c->rdma_depth : 0,
		.flow_control = 1,
		.retry_count = c->attr.max_send_retries,
		.rnr_retry_count = RNR_FOREVER,
		.qp_num = c->qp->qp_num,
	};
	bool ok;

	pthread_mutex_lock(&c->lock);
	ok = !connects(c) || !rdma_connect(c->id, &p);
	pthread_mutex_unlock(&c->lock);
	if (!ok)
		conn_fail(c, TI_ERROR);
}

static void answered(struct conn *c, const struct rdma_cm_event *event)
{
	pthread_mutex_lock(&c->lock);
	if (conn_state(c) == CONN_CONNECTING) {
		keep_private(c, event);
		conn_set_state(c, CONN_ASKED);
		conn_tell(c);
	}
	pthread_mutex_unlock(&c->lock);
}

static void rejected(struct conn *c, const struct rdma_cm_event *event)
{
	pthread_mutex_lock(&c->lock);
	if (conn_state(c) == CONN_CONNECTING)
		keep_private(c, event);
	pthread_mutex_unlock(&c->lock);
	conn_fail(c, TI_REJECTED);
}

/* ---- the passive side ---- */

/* A new connection for a request, as of conn_new(); NULL: the request is turned away. */
static struct conn *new_child(struct conn *listener, struct rdma_cm_id *id)
{
	const ti_conn_info_t info = {
		.private_data = listener->priv_out,
		.private_data_len = listener->priv_out_len,
		.private_data_offset = listener->offset,
		.private_data_offset_len = listener->offset_len,
		.conn_request_cb = listener->request_cb,
		.context = listener->context,
	};
	const struct conn_parts parts = {
		listener->m.ti, listener->pd, listener->named_send, listener->named_recv};
	struct conn *c;

	if (id->verbs != listener->pd->verbs || conn_new(&parts, &listener->attr, &info, &c))
		return NULL;
	return c;
}

/* Is what the listener compares the same? */
static bool matches(const struct conn *listener, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *p = &event->param.conn;
	uint32_t at = listener->offset, len = listener->offset_len;

	if (!len)
		return true;
	return p->private_data && at + len <= p->private_data_len &&
	       memcmp((const uint8_t *)p->private_data + at, listener->priv_out + at, len) == 0;
}

static void requested(struct conn *listener, const struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	struct conn *c = NULL;

	id->context = NULL;
	if (conn_state(listener) == CONN_LISTENING && matches(listener, event))
		c = new_child(listener, id);
	log_line(LOG_LVL_INFO, "ti: listener %p: a request, %s %p", (void *)listener->m.obj.handle,
		c ? "connection" : "which is rejected", c ? (void *)c->m.obj.handle : NULL);
	if (!c) {
		(void)rdma_reject(id, NULL, 0);
		(void)rdma_destroy_id(id);
		return;
	}
	c->id = id;
	id->context = c;
	c->peer_reads = event->param.conn.responder_resources;
	c->peer_serves = event->param.conn.initiator_depth;
	keep_private(c, event);
	conn_set_state(c, CONN_ASKED);
	conn_set_due(c);
	conn_tell(c);
	pthread_mutex_unlock(&c->lock);
	conn_put(c);
}

/* ---- both ---- */

static void established(struct conn *c)
{
	pthread_mutex_lock(&c->lock);
	if (conn_state(c) == CONN_ACCEPTING)
		conn_set_state(c, CONN_LIVE);
	pthread_mutex_unlock(&c->lock);
}

static void gone(struct conn *c, ti_status_t why)
{
	conn_fail(c, why);
	conn_break(c, why);
}

/* How long a connect() may take says the program: true, it is to be tried again. */
static bool unanswered(struct conn *c)
{
	if (conn_state(c) == CONN_CONNECTING) {
		object_hold(&c->m.obj);
		return true;
	}
	conn_fail(c, TI_TIMEOUT);
	return false;
}

static bool unreachable(struct conn *c, int status)
{
	if (status == -ETIMEDOUT || status == ETIMEDOUT)
		return unanswered(c);
	conn_fail(c, TI_ERROR);
	return false;
}

void cm_try_again(struct conn *c)
{
	bool ok = true;

	pthread_mutex_lock(&c->lock);
	if (connects(c)) {
		(void)rdma_destroy_id(c->id); /* first: the new one may need its port */
		c->id = NULL;
		ok = !conn_resolve(c);
		log_line(LOG_LVL_INFO, "ti: connection %p: no answer yet; asks again",
			(void *)c->m.obj.handle);
	}
	pthread_mutex_unlock(&c->lock);
	if (!ok)
		conn_fail(c, TI_TIMEOUT);
	conn_put(c);
}

struct conn *cm_take_event(const struct rdma_cm_event *event)
{
	struct conn *c = event->listen_id ? event->listen_id->context : event->id->context;
	bool again = false;

	if (!c)
		return NULL;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		resolved(c);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ask(c);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		requested(c, event);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		answered(c, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(c);
		break;
	case RDMA_CM_EVENT_REJECTED:
		rejected(c, event);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		again = unanswered(c);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		again = unreachable(c, event->status);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		gone(c, TI_CANCELED);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		log_line(LOG_LVL_FATAL, "ti: the adapter has gone");
		gone(c, TI_ERROR);
		break;
	default:
		break;
	}
	return again ? c : NULL;
}

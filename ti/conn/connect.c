// SPDX-License-Identifier: BSD-3-Clause
/* connect() and listen(). */
#include "ti/conn/connect.h"

#include <errno.h>

#include "ti/conn/cm.h"
#include "ti/conn/conn.h"
#include "ti/conn/disconnect.h"
#include "ti/core/status.h"
#include "ti/core/trace.h"
#include "ti/xfer/qp.h"

enum { RESOLVE_MS = 2000, BACKLOG = 128 };

/* What both take, looked up; each with a reference. */
struct setup {
	struct conn_parts parts;
	struct endpoint *src, *dst;
};

static void setup_end(struct setup *s)
{
	if (s->parts.recv_cq)
		object_put(&s->parts.recv_cq->m.obj);
	if (s->parts.send_cq)
		object_put(&s->parts.send_cq->m.obj);
	if (s->dst)
		object_put(&s->dst->m.obj);
	if (s->src)
		object_put(&s->src->m.obj);
	if (s->parts.pd)
		object_put(&s->parts.pd->m.obj);
	service_put(s->parts.ti);
}

static bool find_cqs(struct setup *s, const ti_conn_info_t *info)
{
	s->parts.send_cq = info->send_cqh ? cq_get(s->parts.ti, info->send_cqh) : NULL;
	s->parts.recv_cq = info->recv_cqh ? cq_get(s->parts.ti, info->recv_cqh) : NULL;
	return !info->send_cqh == !s->parts.send_cq && !info->recv_cqh == !s->parts.recv_cq;
}

/* TI_SUCCESS: s is to be ended. */
static ti_status_t setup(struct setup *s, ti_handle_t h_ti, const ti_conn_info_t *info)
{
	*s = (struct setup){.parts.ti = service_get(h_ti)};
	if (!s->parts.ti)
		return TI_INVALID_HANDLE;
	s->parts.pd = info ? pd_get(s->parts.ti, info->pdh) : NULL;
	s->src = info ? endpoint_get(s->parts.ti, info->src_ep) : NULL;
	s->dst = info ? endpoint_get(s->parts.ti, info->dst_ep) : NULL;
	if (s->parts.pd && s->src && s->src->local && find_cqs(s, info))
		return TI_SUCCESS;
	setup_end(s);
	return TI_INVALID_PARAMETER;
}

static ti_status_t add(struct setup *s, const ti_conn_attr_t *attr, const ti_conn_info_t *info,
	ti_conn_request_t *req, struct conn **out)
{
	ti_status_t st = conn_new(&s->parts, attr, info, out);

	if (st)
		return st;
	if (req)
		*req = (ti_conn_request_t){.conn_handle = (*out)->m.obj.handle,
			.status = TI_NO_STATUS,
			.context = info->context};
	return TI_SUCCESS;
}

/* Unlocks what add() made, and closes it if it did not come about. */
static ti_status_t added(struct conn *c, ti_status_t st, ti_conn_handle_t *ph)
{
	pthread_mutex_unlock(&c->lock);
	if (st) {
		*ph = NULL;
		(void)conn_close(c, NULL, NULL);
	}
	conn_put(c);
	return st;
}

/* ---- connect() ---- */

ti_status_t conn_resolve(struct conn *c)
{
	struct sockaddr *src = (struct sockaddr *)&c->src, *dst = (struct sockaddr *)&c->dst;
	ti_status_t st = cm_make_id(c);

	if (st)
		return st;
	if (rdma_bind_addr(c->id, src) || rdma_resolve_addr(c->id, NULL, dst, RESOLVE_MS)) {
		st = status_of_errno(errno);
		return st == TI_RESOURCE_BUSY ? st : TI_ERROR;
	}
	return TI_SUCCESS;
}

static ti_status_t connect_to(struct setup *s, const ti_conn_attr_t *attr,
	const ti_conn_info_t *info, ti_conn_request_t *req, ti_conn_handle_t *ph)
{
	struct conn *c;
	ti_status_t st;

	if (!s->dst || s->dst->any || info->private_data_len > PRIV_REQ_MAX)
		return TI_INVALID_PARAMETER;
	st = add(s, attr, info, req, &c);
	if (st)
		return st;
	c->active = true;
	c->src = s->src->addr;
	c->dst = s->dst->addr;
	if (req)
		c->request = req;
	*ph = c->m.obj.handle;
	st = qp_make(c);
	if (!st) {
		conn_set_state(c, CONN_CONNECTING);
		conn_set_due(c);
		log_line(LOG_LVL_INFO, "ti: connection %p: connects", (void *)*ph);
		st = conn_resolve(c);
	}
	if (st) /* so that nobody is told */
		conn_set_state(c, CONN_NEW);
	return added(c, st, ph);
}

/* ---- listen() ---- */

static ti_status_t listen_at(struct setup *s, const ti_conn_attr_t *attr,
	const ti_conn_info_t *info, ti_conn_request_t *req, ti_conn_handle_t *ph)
{
	struct conn *c;
	ti_status_t st = add(s, attr, info, req, &c);

	if (st)
		return st;
	if (req)
		req->caller = 1;
	*ph = c->m.obj.handle;
	conn_set_state(c, CONN_LISTENING);
	log_line(LOG_LVL_INFO, "ti: connection %p: listens", (void *)*ph);
	st = cm_make_id(c);
	if (!st && (rdma_bind_addr(c->id, (struct sockaddr *)&s->src->addr) ||
			   rdma_listen(c->id, BACKLOG)))
		st = errno == EADDRINUSE ? TI_RESOURCE_BUSY : TI_ERROR;
	return added(c, st, ph);
}

/* ---- the operations ---- */

typedef ti_status_t (*start_fn)(struct setup *s, const ti_conn_attr_t *attr,
	const ti_conn_info_t *info, ti_conn_request_t *req, ti_conn_handle_t *ph);

static ti_status_t start(ti_handle_t h_ti, const ti_conn_attr_t *attr, ti_conn_info_t *info,
	ti_conn_request_t *req, ti_conn_handle_t *ph, start_fn fn)
{
	struct setup s;
	ti_status_t st;

	if (ph)
		*ph = NULL;
	st = setup(&s, h_ti, info);
	if (st)
		return st;
	st = ph && attr ? fn(&s, attr, info, req, ph) : TI_INVALID_PARAMETER;
	setup_end(&s);
	return st;
}

ti_status_t op_connect(ti_handle_t h_ti, ti_conn_attr_t *p_conn_attr, ti_conn_info_t *p_conn_info,
	ti_conn_request_t *p_conn_req, ti_conn_handle_t *ph_conn)
{
	return start(h_ti, p_conn_attr, p_conn_info, p_conn_req, ph_conn, connect_to);
}

ti_status_t op_listen(ti_handle_t h_ti, ti_conn_attr_t *p_conn_attr, ti_conn_info_t *p_conn_info,
	ti_conn_request_t *p_conn_req, ti_conn_handle_t *ph_conn)
{
	return start(h_ti, p_conn_attr, p_conn_info, p_conn_req, ph_conn, listen_at);
}

// SPDX-License-Identifier: BSD-3-Clause
/* Requests: made, received, turned into connections. */
#include "rpma/conn_req.h"

#include <errno.h>
#include <stdlib.h>

#include "rpma/address.h"
#include "rpma/conn.h"
#include "rpma/log.h"

enum { MAX_RETRIES = 7 };

/* ---- making ---- */

static int new_from_id(struct rpma_peer *peer, struct rdma_cm_id *id,
	const struct rpma_conn_cfg *cfg, bool incoming, struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_req *req = calloc(1, sizeof *req);
	int ret;

	if (!req)
		return RPMA_E_NOMEM;
	req->incoming = incoming;
	ret = link_make(peer, id, cfg ? cfg : &conn_cfg_default, &req->link);
	if (ret)
		free(req);
	else
		*req_ptr = req;
	return ret;
}

int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
	const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr)
{
	const struct rpma_conn_cfg *c = cfg ? cfg : &conn_cfg_default;
	struct rdma_cm_id *id;
	int timeout, ret;

	if (!peer || !addr || !port || !req_ptr)
		return RPMA_E_INVAL;
	timeout = atomic_load_explicit(&c->timeout_ms, memory_order_relaxed);
	ret = address_reach(addr, port, timeout, &id);
	if (ret)
		return ret;
	ret = new_from_id(peer, id, cfg, false, req_ptr);
	if (ret)
		(void)rdma_destroy_id(id);
	else
		LOG_NOTICE("a connection to %s:%s is requested", addr, port);
	return ret;
}
RPMA_SINCE_0_10(rpma_conn_req_new);

static void turn_away(struct rdma_cm_id *id)
{
	(void)rdma_reject(id, NULL, 0);
	(void)rdma_destroy_id(id);
}

static int discard(struct rpma_conn_req *req)
{
	int ret = 0;

	if (req->incoming && rdma_reject(req->link.id, NULL, 0))
		ret = PROVIDER_FAILED("rdma_reject()", errno);
	if (link_destroy(&req->link))
		ret = RPMA_E_PROVIDER;
	free(req);
	return ret;
}

int conn_req_from_event(struct rpma_peer *peer, struct rdma_cm_event *event,
	const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_req *req = NULL;
	struct rdma_cm_id *id = event->id;
	int ret;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		LOG_ERROR("%s instead of a request", rdma_event_str(event->event));
		(void)rdma_ack_cm_event(event);
		return RPMA_E_INVAL;
	}
	ret = new_from_id(peer, id, cfg, true, &req);
	if (!ret)
		ret = link_keep_private_data(&req->link, event);
	if (rdma_ack_cm_event(event) && !ret)
		ret = PROVIDER_FAILED("rdma_ack_cm_event()", errno);
	if (!ret)
		*req_ptr = req;
	else if (req)
		(void)discard(req);
	else
		turn_away(id);
	return ret;
}

int rpma_conn_req_delete(struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_req *req;

	if (!req_ptr)
		return RPMA_E_INVAL;
	req = *req_ptr;
	*req_ptr = NULL;
	return req ? discard(req) : 0;
}
RPMA_SINCE_0_10(rpma_conn_req_delete);

/* ---- connecting ---- */

static int send_answer(struct rpma_conn_req *req, struct rdma_conn_param *param)
{
	if (req->incoming)
		return rdma_accept(req->link.id, param) ? PROVIDER_FAILED("rdma_accept()", errno)
							: 0;
	return rdma_connect(req->link.id, param) ? PROVIDER_FAILED("rdma_connect()", errno) : 0;
}

/*
 * The id moves to the connection's event channel first: whether the peer's answer comes before or
 * after is then all the same, and the id of a request of ours stops being a synchronous one.
 */
static int become_conn(struct rpma_conn_req *req, const struct rpma_conn_private_data *pdata,
	struct rpma_conn **conn_ptr)
{
	struct rdma_conn_param param = {
		.private_data = pdata ? pdata->ptr : NULL,
		.private_data_len = pdata ? pdata->len : 0,
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.flow_control = 1,
		.retry_count = MAX_RETRIES,
		.rnr_retry_count = MAX_RETRIES,
	};
	struct rpma_conn *conn;
	int ret = conn_new(&req->link, &conn);

	if (ret) {
		(void)discard(req);
		return ret;
	}
	ret = send_answer(req, &param);
	if (ret) {
		if (req->incoming)
			(void)rdma_reject(req->link.id, NULL, 0);
		(void)conn_delete(conn);
	} else {
		*conn_ptr = conn;
	}
	free(req);
	return ret;
}

int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
	const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr)
{
	struct rpma_conn_req *req;

	if (!req_ptr || !*req_ptr)
		return RPMA_E_INVAL;
	req = *req_ptr;
	*req_ptr = NULL;
	if (!conn_ptr || (pdata && (!pdata->ptr || !pdata->len))) {
		(void)discard(req);
		return RPMA_E_INVAL;
	}
	return become_conn(req, pdata, conn_ptr);
}
RPMA_SINCE_0_10(rpma_conn_req_connect);

/* ---- before that ---- */

int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
	size_t len, const void *op_context)
{
	struct ibv_recv_wr *bad;
	struct recv r;
	int err;

	if (!req || !dst || mr_recv(dst, offset, len, op_context, &r))
		return RPMA_E_INVAL;
	err = ibv_post_recv(req->link.id->qp, &r.wr, &bad);
	return err ? PROVIDER_FAILED("ibv_post_recv()", err) : 0;
}
RPMA_SINCE_0_10(rpma_conn_req_recv);

int rpma_conn_req_get_private_data(
	const struct rpma_conn_req *req, struct rpma_conn_private_data *pdata)
{
	if (!req || !pdata)
		return RPMA_E_INVAL;
	*pdata = req->link.pdata;
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_req_get_private_data);

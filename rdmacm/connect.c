// SPDX-License-Identifier: BSD-3-Clause
/* Listen, connect, accept, reject, disconnect. */
#include "rdmacm/rdmacm.h"

#include <endian.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "rdmacm/address.h"
#include "rdmacm/call.h"
#include "rdmacm/device.h"
#include "rdmacm/event.h"
#include "rdmacm/explain.h"
#include "rdmacm/qp.h"
#include "rdmacm/table.h"
#include "verbs/for_rdmacm.h"

enum {
	MAX_RETRIES = 7,
	PRIV_CONNECT = 56,
	PRIV_ACCEPT = 196,
	PRIV_REJECT = 148,
	PRIV_UD_CONNECT = 180,
	PRIV_UD_ACCEPT = 136,
	REASON_CONSUMER = 28,
	REASON_VENDOR_OPTION = 35,
};

static bool is_ud(const struct ident *id)
{
	return id->flags & CM_F_DATAGRAM;
}

static bool is_xrc(const struct ident *id)
{
	return id->id.qp_type == IBV_QPT_XRC_SEND || id->id.qp_type == IBV_QPT_XRC_RECV;
}

/* ---- listening ---- */

static int listen_at(struct ident *id, int backlog)
{
	struct cm_addr any = {.family = 4, .gid = {[10] = 0xff, [11] = 0xff}};
	struct cm_listen_call call;
	int ret = 0;

	if (id->state == ID_IDLE)
		ret = ident_bind(id, &any);
	if (ret)
		return ret;
	if (id->state != ID_BOUND)
		return out_of_order(id, "rdma_listen", "has an address and no peer");
	call = (struct cm_listen_call){
		.handle = id->handle,
		.channel = channel_of(id),
		.flags = id->flags,
		.backlog = backlog,
	};
	ret = weft_cm_call(OP_CM_LISTEN, &call, sizeof call, NULL);
	if (ret)
		return ret;
	id->backlog = backlog;
	id->state = ID_LISTEN;
	return 0;
}

int rdma_listen(struct rdma_cm_id *rdma_id, int backlog)
{
	return result(listen_at(to_ident(rdma_id), backlog));
}

/* ---- parameters ---- */

/*
 * What the program asks for, within the device's limits; 255 means what there is at most: all that
 * the device has, or what the request, which *depth is from, lets the answer have.
 */
static int choose_depth(uint8_t wanted, uint8_t max, uint8_t *depth)
{
	if (wanted == RDMA_MAX_RESP_RES)
		wanted = *depth < max ? *depth : max;
	if (wanted > max)
		return log_refused(-EINVAL,
			"responder_resources or initiator_depth of %u refused: the device has %u",
			wanted, max);
	*depth = wanted;
	return 0;
}

static int choose_depths(struct ident *id, const struct rdma_conn_param *p)
{
	const struct device *dev;
	int ret = device_get(&dev);

	if (!ret)
		ret = choose_depth(p ? p->responder_resources : RDMA_MAX_RESP_RES,
			dev->max_responder, &id->responder_resources);
	if (!ret)
		ret = choose_depth(p ? p->initiator_depth : RDMA_MAX_INIT_DEPTH, dev->max_initiator,
			&id->initiator_depth);
	return ret;
}

static uint8_t at_most_7(uint8_t n)
{
	return n < MAX_RETRIES ? n : MAX_RETRIES;
}

static int fill_params(struct ident *id, const struct rdma_conn_param *p, struct cm_params *c)
{
	const struct device *dev;
	int ret = device_get(&dev);

	if (ret)
		return ret;
	c->qpn = id->qpn = id->id.qp ? id->id.qp->qp_num : (p ? p->qp_num : 0);
	c->srq = id->id.qp ? id->id.qp->srq || id->id.srq : (p ? p->srq : 0);
	c->transport = is_xrc(id) ? CM_XRC : CM_RC;
	c->responder_resources = id->responder_resources;
	c->initiator_depth = id->initiator_depth;
	c->flow_control = p ? !!p->flow_control : 1;
	c->retry_count = p ? at_most_7(p->retry_count) : MAX_RETRIES;
	c->rnr_retry = p ? at_most_7(p->rnr_retry_count) : MAX_RETRIES;
	c->mtu = id->path.mtu ? id->path.mtu : device_mtu(dev);
	c->flow_label = be32toh(id->path.flow_label);
	c->ack_timeout = id->ack_timeout;
	c->tclass = id->tos;
	c->ece_vendor = id->local_ece.vendor_id;
	c->ece_options = id->local_ece.options;
	return 0;
}

/* ---- the active side ---- */

/* rdma_create_ep() may have left data that comes before the program's. */
static int connect_data(
	const struct ident *id, const struct rdma_conn_param *p, struct cm_connect_call *call)
{
	uint8_t data[CM_PRIV_MAX];
	size_t more = p ? p->private_data_len : 0;
	size_t max = is_ud(id) ? PRIV_UD_CONNECT : PRIV_CONNECT;

	int ret = check_private_data(more ? p->private_data : data, id->connect_len + more, max);

	if (ret)
		return ret;
	if (id->connect_len)
		memcpy(data, id->connect, id->connect_len);
	if (more)
		memcpy(data + id->connect_len, p->private_data, more);
	return copy_private_data(
		call->priv, &call->param.priv_len, data, id->connect_len + more, max);
}

static struct cm_connect_call connect_call(const struct ident *id)
{
	return (struct cm_connect_call){
		.handle = id->handle,
		.channel = channel_of(id),
		.flags = id->flags,
		.ps = id->id.ps,
		.src = id->src,
		.dst = id->dst,
	};
}

static int connect_id(struct ident *id, const struct rdma_conn_param *p)
{
	struct cm_connect_call call = connect_call(id);
	enum ident_state before = id->state;
	struct proto_cm_connecting reply;
	int ret = 0;

	if (id->state != ID_ROUTE_RESOLVED)
		return out_of_order(id, "rdma_connect", "has its route resolved");
	id->responder_resources = RDMA_MAX_RESP_RES;
	id->initiator_depth = RDMA_MAX_INIT_DEPTH;
	if (!is_ud(id))
		ret = choose_depths(id, p);
	if (!ret)
		ret = fill_params(id, p, &call.param);
	if (!ret)
		ret = connect_data(id, p, &call);
	if (ret)
		return ret;
	id->retry_count = call.param.retry_count;
	id->known = true;
	id->state = ID_CONNECTING; /* the answer may come before the call returns */
	ret = weft_cm_call(OP_CM_CONNECT, &call, cm_connect_size(&call), &reply);
	if (ret) {
		id->state = before;
		return ret;
	}
	id->local_comm = reply.comm_id;
	return 0;
}

int rdma_connect(struct rdma_cm_id *rdma_id, struct rdma_conn_param *conn_param)
{
	struct ident *id = to_ident(rdma_id);
	int ret = connect_id(id, conn_param);

	return ret ? fail(ret) : ident_complete(id);
}

int rdma_establish(struct rdma_cm_id *rdma_id)
{
	struct ident *id = to_ident(rdma_id);
	int ret;

	if (rdma_id->qp || id->state != ID_RESPONDED)
		return fail(out_of_order(id, "rdma_establish",
			"has no QP of its own, and RDMA_CM_EVENT_CONNECT_RESPONSE"));
	ret = call_about(OP_CM_READY, id->handle);
	if (!ret)
		id->state = ID_CONNECTED;
	return result(ret);
}

/* ---- the passive side ---- */

static int accept_data(const struct rdma_conn_param *p, struct cm_accept_call *call, size_t max)
{
	return copy_private_data(
		call->priv, &call->param.priv_len, p->private_data, p->private_data_len, max);
}

static int accept_datagram(struct ident *id, const struct rdma_conn_param *p)
{
	struct cm_accept_call call = {.handle = id->handle, .channel = channel_of(id)};
	int ret = fill_params(id, p, &call.param);

	if (!ret && p)
		ret = accept_data(p, &call, PRIV_UD_ACCEPT);
	if (ret)
		return ret;
	call.param.qkey = RDMA_UDP_QKEY;
	ret = weft_cm_call(OP_CM_ACCEPT, &call, cm_accept_size(&call), NULL);
	if (!ret)
		id->state = ID_ENDED;
	return ret;
}

static int accept_id(struct ident *id, const struct rdma_conn_param *p)
{
	struct cm_accept_call call = {.handle = id->handle, .channel = channel_of(id)};
	int ret;

	if (id->state != ID_REQUESTED)
		return out_of_order(id, "rdma_accept", "is that of a request");
	if (is_ud(id))
		return accept_datagram(id, p);
	ret = choose_depths(id, p);
	if (!ret)
		ret = fill_params(id, p, &call.param);
	if (!ret && p)
		ret = accept_data(p, &call, PRIV_ACCEPT);
	if (!ret && id->id.qp)
		ret = qp_to_connected(id);
	if (ret)
		return ret;
	id->state = ID_ACCEPTING;
	ret = weft_cm_call(OP_CM_ACCEPT, &call, cm_accept_size(&call), NULL);
	if (ret) {
		id->state = ID_ENDED;
		qp_to_error(id);
	}
	return ret;
}

int rdma_accept(struct rdma_cm_id *rdma_id, struct rdma_conn_param *conn_param)
{
	struct ident *id = to_ident(rdma_id);
	int ret = accept_id(id, conn_param);

	if (ret)
		return fail(ret);
	return is_ud(id) ? 0 : ident_complete(id);
}

static int reject(struct rdma_cm_id *rdma_id, const void *data, uint8_t len, uint16_t reason)
{
	struct ident *id = to_ident(rdma_id);
	int ret = check_private_data(data, len, is_ud(id) ? PRIV_UD_ACCEPT : PRIV_REJECT);

	if (ret)
		return ret;
	ret = call_reject(id, reason, data, len);
	if (ret)
		return at_an_end(id, ret, "rdma_reject", "is that of a request, or has an answer");
	id->state = ID_ENDED;
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return result(reject(id, private_data, private_data_len, REASON_CONSUMER));
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return result(reject(id, private_data, private_data_len, REASON_VENDOR_OPTION));
}

int rdma_notify(struct rdma_cm_id *rdma_id, enum ibv_event_type event)
{
	struct ident *id = to_ident(rdma_id);
	int ret;

	if (event == IBV_EVENT_PATH_MIG)
		return 0;
	if (event != IBV_EVENT_COMM_EST)
		return fail(log_refused(EINVAL, "rdma_notify refused: it is for "
						"IBV_EVENT_COMM_EST and IBV_EVENT_PATH_MIG"));
	ret = call_about(OP_CM_NOTIFY, id->handle);
	return result(ret ? at_an_end(id, ret, "rdma_notify", "has accepted") : 0);
}

/* ---- the end ---- */

static bool was_connected(const struct ident *id)
{
	return id->state == ID_CONNECTED || id->state == ID_ACCEPTING ||
	       id->state == ID_DISCONNECTED || id->state == ID_DISCONNECTING ||
	       id->state == ID_ENDED;
}

int rdma_disconnect(struct rdma_cm_id *rdma_id)
{
	struct ident *id = to_ident(rdma_id);
	bool waits = id->state == ID_CONNECTED;
	int ret;

	if (!was_connected(id) || is_ud(id))
		return fail(at_an_end(id, -EINVAL, "rdma_disconnect",
			is_ud(id) ? "has a connection, which none of RDMA_PS_UDP has"
				  : "is connected, or was"));
	qp_to_error(id);
	if (id->state == ID_CONNECTED || id->state == ID_DISCONNECTED)
		id->left_at = clock_ns();
	if (id->state == ID_CONNECTED)
		id->state = ID_DISCONNECTING;
	ret = tell_about(OP_CM_DISCONNECT, id->handle);
	if (ret)
		return fail(ret);
	if (id->state == ID_DISCONNECTED)
		id->state = ID_ENDED;
	return waits ? ident_complete(id) : 0;
}

/* ---- ECE: carried for the program, our device has none ---- */

int rdma_set_local_ece(struct rdma_cm_id *rdma_id, struct ibv_ece *ece)
{
	struct ident *id = to_ident(rdma_id);

	if (!ece || !ece->vendor_id)
		return fail(EINVAL);
	id->local_ece = (struct ibv_ece){.vendor_id = ece->vendor_id, .options = ece->options};
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *rdma_id, struct ibv_ece *ece)
{
	if (rdma_id->qp || !ece)
		return fail(EINVAL);
	*ece = to_ident(rdma_id)->remote_ece;
	return 0;
}

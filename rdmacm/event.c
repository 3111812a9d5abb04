// SPDX-License-Identifier: BSD-3-Clause
/* Events: what weftd and we ourselves report, and what it does to the id before the program sees
 * it. */
#include "rdmacm/event.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/address.h"
#include "rdmacm/call.h"
#include "rdmacm/channel.h"
#include "rdmacm/device.h"
#include "rdmacm/explain.h"
#include "rdmacm/mcast.h"
#include "rdmacm/newer.h"
#include "rdmacm/qp.h"
#include "rdmacm/resolve.h"
#include "rdmacm/table.h"

static const char *const names[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
	[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
	[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
	[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
	[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
	[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
	[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
	[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
	[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
	[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
	[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
	[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	[RDMA_CM_EVENT_ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
	[RDMA_CM_EVENT_ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
	[RDMA_CM_EVENT_USER] = "RDMA_CM_EVENT_USER",
	[RDMA_CM_EVENT_INTERNAL] = "RDMA_CM_EVENT_INTERNAL",
};

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return event < sizeof names / sizeof names[0] ? names[event] : "UNKNOWN EVENT";
}

int ident_put_event(struct ident *id, int type, int status)
{
	struct cm_event e = {
		.type = type, .status = status, .handle = id->handle, .flags = CM_E_LOCAL};

	return channel_put(to_channel(id->id.channel), &e, cm_event_size(&e));
}

static bool is_programs_own(uint32_t type)
{
	return type == RDMA_CM_EVENT_USER || type == RDMA_CM_EVENT_INTERNAL;
}

int rdma_write_cm_event(
	struct rdma_cm_id *rdma_id, enum rdma_cm_event_type event, int status, uint64_t arg)
{
	struct cm_event e = {.type = event,
		.status = status,
		.handle = to_ident(rdma_id)->handle,
		.flags = CM_E_LOCAL,
		.param = {.priv_len = sizeof arg}};

	if (!is_programs_own(event))
		return fail(EINVAL);
	memcpy(e.priv, &arg, sizeof arg);
	return result(channel_put(to_channel(rdma_id->channel), &e, cm_event_size(&e)));
}

/* ---- what an event does to its id ---- */

static void take_peer(struct ident *id, const struct cm_event *e)
{
	id->local_comm = e->local_comm;
	id->remote_comm = e->remote_comm;
	id->peer_guid = e->remote_guid;
	id->peer = e->param;
	id->responder_resources = e->param.responder_resources;
	id->initiator_depth = e->param.initiator_depth;
	id->remote_ece =
		(struct ibv_ece){.vendor_id = e->param.ece_vendor, .options = e->param.ece_options};
}

/* The id of a request, a new one. */
static int on_request(struct ident *listener, struct rdma_cm_event *event, const struct cm_event *e)
{
	struct ident *id =
		ident_new(listener->id.channel, listener->id.context, listener->id.ps, e->handle);
	int ret;

	if (!id)
		return -ENOMEM;
	id->src = e->src;
	id->dst = e->dst;
	id->src.is_gid = id->dst.is_gid = listener->src.is_gid;
	id->flags = listener->flags & CM_F_DATAGRAM;
	id->state = ID_REQUESTED;
	take_peer(id, e);
	id->retry_count = e->param.retry_count;
	id->id.qp_type = listener->id.qp_type;
	ret = ident_attach_device(id);
	ident_show_addresses(id);
	event->id = &id->id;
	event->listen_id = &listener->id;
	if (!ret && listener->sync)
		ret = rdma_migrate_id(&id->id, NULL) ? -errno : 0;
	return ret;
}

/* A response for an id whose QP is ours to bring up: the program sees the outcome alone. */
static void on_response(struct ident *id, struct rdma_cm_event *event)
{
	int ret;

	id->state = ID_RESPONDED;
	if (!id->id.qp)
		return;
	ret = qp_to_connected(id);
	if (!ret)
		ret = tell_about(OP_CM_READY, id->handle);
	if (!ret) {
		id->state = ID_CONNECTED;
		event->event = RDMA_CM_EVENT_ESTABLISHED;
		return;
	}
	(void)call_reject(id, 0, NULL, 0);
	qp_to_error(id);
	id->state = ID_ENDED;
	event->event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->status = ret;
}

static int apply(struct ident *id, struct rdma_cm_event *event, const struct cm_event *e)
{
	event->id = &id->id;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ADDR_ERROR:
		ident_resolved(id, e);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		id->state = ID_ADDR_RESOLVED;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		id->state = ID_ROUTE_RESOLVED;
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return on_request(id, event, e);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		take_peer(id, e);
		on_response(id, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		id->state = id->flags & CM_F_DATAGRAM ? ID_ENDED : ID_CONNECTED;
		break;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
		qp_to_error(id);
		id->state = ID_ENDED;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* Its QP the program may have destroyed; rdma_disconnect() moves it to ERR. */
		id->state = id->state == ID_DISCONNECTING ? ID_ENDED : ID_DISCONNECTED;
		break;
	default:
		break;
	}
	return 0;
}

/* ---- as the program sees it ---- */

static void fill_conn(struct got_event *got, const struct cm_event *e)
{
	struct rdma_conn_param *c = &got->event.param.conn;

	c->private_data = e->param.priv_len ? got->priv : NULL;
	c->private_data_len = e->param.priv_len;
	c->responder_resources = e->param.responder_resources;
	c->initiator_depth = e->param.initiator_depth;
	c->flow_control = e->param.flow_control;
	c->retry_count = e->param.retry_count;
	c->rnr_retry_count = e->param.rnr_retry;
	c->srq = e->param.srq;
	c->qp_num = e->param.qpn;
}

static void fill_ud(struct got_event *got, const struct cm_event *e, const struct ident *id)
{
	struct rdma_ud_param *u = &got->event.param.ud;
	int index = device_gid_index(id->src.gid);

	u->private_data = e->param.priv_len ? got->priv : NULL;
	u->private_data_len = e->param.priv_len;
	u->qp_num = e->param.qpn;
	u->qkey = e->param.qkey;
	u->ah_attr.is_global = 1;
	u->ah_attr.port_num = 1;
	u->ah_attr.grh.hop_limit = 64;
	u->ah_attr.grh.flow_label = be32toh(id->path.flow_label);
	u->ah_attr.grh.sgid_index = index < 0 ? 0 : index;
	memcpy(u->ah_attr.grh.dgid.raw, id->dst.gid, 16);
}

/* What the event does, and what the program sees of it; -EAGAIN: nothing, it is out of date. */
static int show(struct ident *owner, struct got_event *got, const struct cm_event *e)
{
	int ret;

	if (e->join) {
		got->event.id = &owner->id;
		got->join = join_take_event(owner, e->join, &got->event);
		return got->join ? 0 : -EAGAIN;
	}
	if (is_programs_own(e->type)) {
		got->event.id = &owner->id;
		memcpy(&got->event.param, e->priv,
			sizeof(uint64_t)); /* param.arg of newer headers */
		return 0;
	}
	if (ident_is_late(owner, e))
		return -EAGAIN;
	explain_cm_event(owner, e);
	ret = apply(owner, &got->event, e);
	if (ret)
		return ret == -EAGAIN ? -EIO : ret;
	if (owner->flags & CM_F_DATAGRAM)
		fill_ud(got, e, owner);
	else
		fill_conn(got, e);
	return 0;
}

static int deliver(const struct cm_event *e, struct rdma_cm_event **out)
{
	struct ident *owner = ident_count_event(e->listen_handle ? e->listen_handle : e->handle);
	struct got_event *got;
	int ret = -ENOMEM;

	if (!owner) { /* destroyed meanwhile */
		if (e->listen_handle)
			(void)call_about(OP_CM_DESTROY, e->handle);
		return -EAGAIN;
	}
	got = calloc(1, sizeof *got);
	if (got) {
		got->owner = owner;
		got->event.event = e->type;
		got->event.status = e->status;
		memcpy(got->priv, e->priv, e->param.priv_len);
		ret = show(owner, got, e);
	}
	if (ret) {
		free(got);
		ident_ack_event(owner);
		return ret;
	}
	*out = &got->event;
	return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct cm_event e;
	int ret;

	if (!channel || !event)
		return fail(EINVAL);
	do {
		ret = channel_take(to_channel(channel), &e);
		if (ret)
			return fail(ret);
		ret = deliver(&e, event);
	} while (ret == -EAGAIN);
	return result(ret);
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct got_event *got = (struct got_event *)event;

	if (!event)
		return fail(EINVAL);
	if (got->join)
		join_ack_event(got->owner, got->join);
	ident_ack_event(got->owner);
	free(got);
	return 0;
}

int ident_complete(struct ident *id)
{
	int status;

	if (!id->sync)
		return 0;
	if (id->id.event) {
		rdma_ack_cm_event(id->id.event);
		id->id.event = NULL;
	}
	if (rdma_get_cm_event(id->id.channel, &id->id.event))
		return -1;
	status = id->id.event->status;
	if (!status)
		return 0;
	if (id->id.event->event == RDMA_CM_EVENT_REJECTED)
		return fail(ECONNREFUSED);
	return fail(status);
}

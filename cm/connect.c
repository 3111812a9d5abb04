// SPDX-License-Identifier: BSD-3-Clause
/* Making connections: REQ, REP, RTU, and what the two sides do with them. */
#include "cm/connect.h"

#include <errno.h>
#include <string.h>

#include "cm/held.h"
#include "cm/id.h"
#include "cm/ports.h"
#include "cm/receive.h"
#include "cm/sidr.h"

enum {
	EXTENDED_XRC = 1,
	PKEY_DEFAULT = 0xffff,
	LID_PERMISSIVE = 0xffff,
	HOP_LIMIT = 64,
	PSN_MASK = 0xffffff
};

/* With less backlog than that, each request taken is to be told at once. */
enum { ACK_BELOW = 8 };

/* Ids of the request are made by weftd, in the half of the numbers that owners do not use. */
static uint32_t passive_handle(uint32_t comm)
{
	return CM_HANDLE_PASSIVE | comm;
}

void cm_fill_ip_hdr(const struct cm_id *id, uint8_t *priv)
{
	struct cm_ip_hdr ip = {.ip_version = id->dst.family, .src_port = id->src.port};
	int skip = id->dst.family == 4 ? 12 : 0;

	memcpy(ip.src + skip, id->src.gid + skip, 16 - skip);
	memcpy(ip.dst + skip, id->dst.gid + skip, 16 - skip);
	cm_ip_hdr_pack(&ip, priv);
}

/* ---- the active side ---- */

static void fill_req(const struct cm_id *id, const struct cm_connect_call *call, struct cm_req *req)
{
	const struct cm_params *p = &call->param;

	req->local_comm_id = id->local_comm;
	req->vendor_id = p->ece_vendor;
	req->service_id = id->service_id;
	req->ca_guid = id->cm->ca_guid;
	req->qpn = p->qpn;
	req->responder_resources = p->responder_resources;
	req->initiator_depth = p->initiator_depth;
	req->remote_timeout = CM_TIMEOUT;
	req->transport = p->transport;
	req->extended_transport = p->transport == CM_XRC ? EXTENDED_XRC : 0;
	req->flow_control = p->flow_control;
	req->psn = id->psn;
	req->local_timeout = CM_TIMEOUT;
	req->retry_count = p->retry_count;
	req->pkey = PKEY_DEFAULT;
	req->mtu = p->mtu;
	req->rnr_retry = p->rnr_retry;
	req->max_cm_retries = CM_RETRIES;
	req->srq = p->srq;
	req->primary.local_lid = LID_PERMISSIVE;
	req->primary.remote_lid = LID_PERMISSIVE;
	memcpy(req->primary.local_gid, id->addr.grh.local, 16);
	memcpy(req->primary.remote_gid, id->addr.grh.remote, 16);
	req->primary.flow_label = p->flow_label;
	req->primary.tclass = p->tclass;
	req->primary.hop_limit = HOP_LIMIT;
	req->primary.ack_timeout = id->local_ack;
	cm_fill_ip_hdr(id, req->priv);
	memcpy(req->priv + CM_IP_HDR_SIZE, call->priv, p->priv_len);
}

static int start(struct cm_id *id, const struct cm_connect_call *call)
{
	struct cm *cm = id->cm;
	struct cm_addr src = call->src;
	int ret;

	if (!cm->env.is_local(cm->env.arg, src.gid))
		return -EADDRNOTAVAIL;
	if (!id->bind.bound) {
		ret = bind_take(id, call->ps, &src, call->flags);
		if (ret)
			return ret;
	}
	src.port = id->bind.addr.port;
	id->channel = call->channel;
	id->ps = call->ps;
	id->flags = call->flags;
	id->src = src;
	id->dst = call->dst;
	id_clear_remote(id);
	id->addr = mad_addr_of_gids(src.gid, call->dst.gid);
	if (!id->local_comm)
		id_set_comm(id, id_new_comm(cm));
	id->tid = mad_tid(&cm->agent, id->local_comm);
	id->service_id = cm_service_id(call->ps, call->dst.port);
	id->qpn = call->param.qpn;
	id->psn = cm->env.random(cm->env.arg) & PSN_MASK;
	id->local_ack = call->param.ack_timeout ? call->param.ack_timeout : CM_LIFETIME + 1;
	return 0;
}

static int send_req(struct cm_id *id, const struct cm_connect_call *call)
{
	struct cm_msg m = id_msg(id, CM_REQ);

	if (call->param.priv_len > CM_REQ_PRIV - CM_IP_HDR_SIZE)
		return -EINVAL;
	memset(&m.req, 0, sizeof m.req);
	m.hdr.attr_mod = call->param.ece_options;
	fill_req(id, call, &m.req);
	id->transport = call->param.transport;
	id->state = CM_REQ_SENT;
	id_send(id, &m, true);
	return 0;
}

int cm_connect(struct cm *cm, uint32_t owner, const struct cm_connect_call *call,
	uint32_t *local_comm, uint16_t *port)
{
	struct cm_id *id = id_find(cm, owner, call->handle);
	bool made = !id;
	int ret = -EINVAL;

	if (call->handle & CM_HANDLE_PASSIVE || call->src.family != call->dst.family)
		return -EINVAL;
	if (!id)
		id = id_new(cm, owner, call->handle, call->channel);
	if (!id)
		return -ENOMEM;
	if (id->state == CM_IDLE || id->state == CM_ENDED)
		ret = start(id, call);
	if (!ret)
		ret = call->flags & CM_F_DATAGRAM ? sidr_connect(id, call) : send_req(id, call);
	if (ret) {
		if (made)
			id_free(id);
		return ret;
	}
	*local_comm = id->local_comm;
	*port = id->src.port;
	return 0;
}

void on_rep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_rep *rep = &m->rep;
	struct cm_id *id = id_by_comm(cm, rep->remote_comm_id);
	struct cm_event e = {.type = CM_EV_CONNECT_RESPONSE};

	if (!id || !mad_same_peer(&id->addr, from)) {
		cm_answer_rej(cm, from, m->hdr.tid, 0, rep->local_comm_id, CM_ABOUT_REP,
			CM_REJ_INVALID_COMM_ID);
		return;
	}
	if (id->state != CM_REQ_SENT) {
		cm->counts[CM_N_DUPLICATE]++;
		if (id->remote_comm == rep->local_comm_id && id->state == CM_ESTABLISHED) {
			struct cm_msg rtu = id_msg(id, CM_RTU);

			id_send(id, &rtu, false);
		} else if (id->remote_comm == rep->local_comm_id && id->state == CM_REP_RCVD) {
			struct cm_msg mra = id_msg(id, CM_MRA);

			mra.mra.about = CM_ABOUT_REP;
			mra.mra.service_timeout = CM_MRA_TIMEOUT;
			id_send(id, &mra, false);
		}
		return;
	}
	id_cancel(id);
	id_set_remote(id, rep->local_comm_id);
	id->state = CM_REP_RCVD;
	id->remote_qpn = id->transport == CM_XRC ? rep->eecn : rep->qpn;
	id->remote_guid = rep->ca_guid;
	e.param = (struct cm_params){
		.qpn = id->remote_qpn,
		.sq_psn = rep->psn,
		.rq_psn = id->psn,
		.qkey = rep->qkey,
		.ece_vendor =
			(uint32_t)rep->vendor_id_h << 16 | rep->vendor_id_m << 8 | rep->vendor_id_l,
		.ece_options = m->hdr.attr_mod,
		.responder_resources = rep->initiator_depth,
		.initiator_depth = rep->responder_resources,
		.flow_control = rep->flow_control,
		.rnr_retry = rep->rnr_retry,
		.srq = rep->srq,
		.ack_timeout = id->local_ack,
		.priv_len = CM_REP_PRIV,
	};
	memcpy(e.priv, rep->priv, CM_REP_PRIV);
	id_event(id, &e);
}

int cm_ready(struct cm *cm, uint32_t owner, uint32_t handle)
{
	struct cm_id *id = id_find(cm, owner, handle);
	struct cm_msg m;

	if (!id)
		return -EINVAL;
	if (id->state != CM_REP_RCVD)
		return id->state == CM_ENDED || id->state > CM_ESTABLISHED ? -ECONNRESET : -EINVAL;
	m = id_msg(id, CM_RTU);
	id->state = CM_ESTABLISHED;
	id_send(id, &m, false);
	return 0;
}

/* ---- the passive side ---- */

static uint16_t ps_of(uint64_t service_id)
{
	return service_id >> 32 ? 0 : service_id >> 16;
}

/* An address of the IP header, of which IPv4 has the last bytes. */
static struct cm_addr addr_of(const struct cm_ip_hdr *ip, const uint8_t bytes[16], uint16_t port)
{
	struct cm_addr a = {.family = ip->ip_version, .port = port};
	int skip = ip->ip_version == 4 ? 12 : 0;

	if (skip)
		a.gid[10] = a.gid[11] = 0xff;
	memcpy(a.gid + skip, bytes + skip, 16 - skip);
	return a;
}

struct cm_id *cm_new_request(struct cm *cm, const struct mad_addr *from, uint64_t service_id,
	const struct cm_ip_hdr *ip, uint32_t flags, uint16_t *reason)
{
	struct cm_addr src = addr_of(ip, ip->src, ip->src_port);
	struct cm_addr dst = addr_of(ip, ip->dst, service_id & 0xffff);
	struct cm_id *listener, *id;
	uint32_t comm;
	bool near;

	if (memcmp(src.gid, from->grh.remote, MAD_GID) ||
		memcmp(dst.gid, from->grh.local, MAD_GID)) {
		cm->counts[CM_N_WRONG_ADDRESS]++;
		*reason = CM_REJ_INVALID_GID;
		return NULL;
	}
	listener = cm_find_listener(cm, ps_of(service_id), &dst, &near);
	if (!listener || !!(listener->flags & CM_F_DATAGRAM) != !!(flags & CM_F_DATAGRAM)) {
		cm->counts[CM_N_NO_LISTENER]++;
		*reason = near ? CM_REJ_CONSUMER_DEFINED : CM_REJ_INVALID_SERVICE_ID;
		return NULL;
	}
	*reason = CM_REJ_CONSUMER_DEFINED;
	if (listener->backlog <= 0) {
		cm->counts[CM_N_BACKLOG_FULL]++;
		return NULL;
	}
	comm = id_new_comm(cm);
	id = id_new(cm, listener->owner, passive_handle(comm), listener->channel);
	if (!id)
		return NULL;
	id_set_comm(id, comm);
	listener->backlog--;
	id->listen_handle = listener->handle;
	id->flags = flags;
	id->ps = listener->ps;
	id->src = dst;
	id->dst = src;
	id->addr = *from;
	id->service_id = service_id;
	id->psn = cm->env.random(cm->env.arg) & PSN_MASK;
	return id;
}

/* A REQ that we know already: the answer was lost, or is still to come. */
static void on_duplicate_req(struct cm_id *id, const struct mad_addr *from, const struct cm_msg *m)
{
	struct cm *cm = id->cm;

	cm->counts[CM_N_DUPLICATE]++;
	if (id->state == CM_REQ_RCVD) {
		struct cm_msg mra = id_msg(id, CM_MRA);

		mra.mra.about = CM_ABOUT_REQ;
		mra.mra.service_timeout = CM_MRA_TIMEOUT;
		id_send(id, &mra, false);
	} else if (id->state == CM_REP_SENT && id->pending) {
		(void)mad_post(&cm->agent, &id->addr, id->pending->mad);
	} else if (id->state == CM_TIMEWAIT) {
		cm_answer_rej(cm, from, m->hdr.tid, 0, m->req.local_comm_id, CM_ABOUT_REQ,
			CM_REJ_STALE_CONN);
	}
}

static void req_event(struct cm_id *id, const struct cm_msg *m)
{
	const struct cm_id *listener = id_find(id->cm, id->owner, id->listen_handle);
	const struct cm_req *req = &m->req;
	struct cm_event e = {
		.type = CM_EV_CONNECT_REQUEST,
		.listen_handle = id->listen_handle,
		.src = id->src,
		.dst = id->dst,
		.param =
			{
				.qpn = req->qpn,
				.sq_psn = req->psn,
				.rq_psn = id->psn,
				.ece_vendor = req->vendor_id,
				.ece_options = m->hdr.attr_mod,
				.responder_resources = req->initiator_depth,
				.initiator_depth = req->responder_resources,
				.flow_control = req->flow_control,
				.retry_count = req->retry_count,
				.rnr_retry = req->rnr_retry,
				.srq = req->srq,
				.mtu = req->mtu,
				.ack_timeout = req->primary.ack_timeout,
				.tclass = req->primary.tclass,
				.flow_label = req->primary.flow_label,
				.transport = req->transport,
				.priv_len = CM_REQ_PRIV - CM_IP_HDR_SIZE,
			},
	};

	memcpy(e.priv, req->priv + CM_IP_HDR_SIZE, CM_REQ_PRIV - CM_IP_HDR_SIZE);
	if (listener && listener->backlog < ACK_BELOW)
		e.flags = CM_E_ACK;
	id_event(id, &e);
}

void on_req(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	struct cm_id *id = id_by_remote(cm, m->req.local_comm_id, from->grh.remote);

	if (id)
		on_duplicate_req(id, from, m);
	else
		cm_request(cm, from, m, true);
}

static bool known_transport(const struct cm_req *req)
{
	return req->transport == CM_RC ||
	       (req->transport == CM_XRC && req->extended_transport == EXTENDED_XRC);
}

void cm_request(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m, bool hold)
{
	const struct cm_req *req = &m->req;
	uint16_t reason = CM_REJ_UNSUPPORTED;
	struct cm_id *id = NULL, *old;
	struct cm_ip_hdr ip;

	cm_ip_hdr_unpack(req->priv, &ip);
	if (ip.version == 0 && (ip.ip_version == 4 || ip.ip_version == 6) && known_transport(req))
		id = cm_new_request(cm, from, req->service_id, &ip, 0, &reason);
	if (!id && hold && reason == CM_REJ_INVALID_SERVICE_ID && cm_hold(cm, from, m))
		return;
	if (!id) {
		cm_answer_rej(cm, from, m->hdr.tid, 0, req->local_comm_id, CM_ABOUT_REQ, reason);
		return;
	}
	old = id_by_remote_qp(cm, req->ca_guid, from->grh.remote, req->qpn);
	if (old) { /* its peer was started anew and does not know of it */
		cm->counts[CM_N_STALE]++;
		id_event_simple(old, CM_EV_DISCONNECTED, 0);
		id_timewait(old);
		cm_taken(cm, id->owner, id->handle); /* its place in the backlog is free again */
		id_free(id);
		cm_answer_rej(cm, from, m->hdr.tid, 0, req->local_comm_id, CM_ABOUT_REQ,
			CM_REJ_STALE_CONN);
		return;
	}
	id_set_remote(id, req->local_comm_id);
	id->state = CM_REQ_RCVD;
	id->tid = m->hdr.tid;
	id->remote_guid = req->ca_guid;
	id->remote_qpn = req->qpn;
	id->transport = req->transport;
	id->local_ack = req->primary.ack_timeout;
	req_event(id, m);
}

static int send_rep(struct cm_id *id, const struct cm_accept_call *call)
{
	const struct cm_params *p = &call->param;
	struct cm_msg m = id_msg(id, CM_REP);
	struct cm_rep *rep = &m.rep;

	if (p->priv_len > CM_REP_PRIV)
		return -EINVAL;
	m.hdr.attr_mod = p->ece_options;
	rep->vendor_id_h = p->ece_vendor >> 16;
	rep->vendor_id_m = p->ece_vendor >> 8;
	rep->vendor_id_l = p->ece_vendor;
	/* A target of XRC stands where an end-to-end context would. */
	if (id->transport == CM_XRC)
		rep->eecn = p->qpn;
	else
		rep->qpn = p->qpn;
	rep->psn = id->psn;
	rep->responder_resources = p->responder_resources;
	rep->initiator_depth = p->initiator_depth;
	rep->target_ack_delay = CM_ACK_DELAY;
	rep->flow_control = p->flow_control;
	rep->rnr_retry = p->rnr_retry;
	rep->srq = p->srq;
	rep->ca_guid = id->cm->ca_guid;
	memcpy(rep->priv, call->priv, p->priv_len);
	id->qpn = p->qpn;
	id->channel = call->channel;
	id->state = CM_REP_SENT;
	id_send(id, &m, true);
	return 0;
}

int cm_accept(struct cm *cm, uint32_t owner, const struct cm_accept_call *call)
{
	struct cm_id *id = id_find(cm, owner, call->handle);
	int ret = -EINVAL; /* also where the client gave up meanwhile */

	if (!id)
		return ret;
	cm_taken(cm, owner, call->handle);
	if (id->state == CM_SIDR_REQ_RCVD)
		ret = sidr_answer(id, CM_SIDR_OK, &call->param, call->priv, call->param.priv_len);
	else if (id->state == CM_REQ_RCVD)
		ret = send_rep(id, call);
	if (!ret)
		id->accepted = 1;
	return ret;
}

static void established(struct cm_id *id)
{
	id_cancel(id);
	id->state = CM_ESTABLISHED;
	id_event_simple(id, CM_EV_ESTABLISHED, 0);
}

void on_rtu(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	struct cm_id *id = id_of(cm, from, m->rtu.remote_comm_id, m->rtu.local_comm_id);

	if (id && id->state == CM_REP_SENT)
		established(id);
	else
		cm->counts[id ? CM_N_DUPLICATE : CM_N_UNEXPECTED]++;
}

int cm_notify(struct cm *cm, uint32_t owner, uint32_t handle)
{
	struct cm_id *id = id_find(cm, owner, handle);

	if (!id)
		return -EINVAL;
	if (id->state == CM_REP_SENT)
		established(id);
	else if (id->state != CM_ESTABLISHED)
		return -EINVAL;
	return 0;
}

/* ---- more time ---- */

void on_mra(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_mra *mra = &m->mra;
	struct cm_id *id = id_by_comm(cm, mra->remote_comm_id);
	bool fits;

	if (!id || !mad_same_peer(&id->addr, from)) {
		cm->counts[CM_N_UNEXPECTED]++;
		return;
	}
	fits = (id->state == CM_REQ_SENT && mra->about == CM_ABOUT_REQ) ||
	       (id->state == CM_REP_SENT && mra->about == CM_ABOUT_REP);
	if (!fits || id->late || !id->pending) {
		cm->counts[CM_N_DUPLICATE]++;
		return;
	}
	id->late = 1;
	mad_extend(id->pending, cm_timeout_ms(mra->service_timeout) + cm_timeout_ms(CM_TIMEOUT));
}

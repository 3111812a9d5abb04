// SPDX-License-Identifier: BSD-3-Clause
/* Making connections, on the side that asks: REQ, what it is answered by, RTU. */
#include "cm/connect.h"

#include <errno.h>
#include <string.h>

#include "cm/id.h"
#include "cm/ports.h"
#include "cm/receive.h"
#include "cm/sidr.h"
#include "cm/suspect.h"
#include "cm/tables.h"

enum {
	PKEY_DEFAULT = 0xffff,
	LID_PERMISSIVE = 0xffff,
	HOP_LIMIT = 64,
};

void cm_fill_ip_hdr(const struct cm_id *id, uint8_t *priv)
{
	struct cm_ip_hdr ip = {.ip_version = id->dst.family, .src_port = id->src.port};
	int skip = id->dst.family == 4 ? 12 : 0;

	memcpy(ip.src + skip, id->src.gid + skip, 16 - skip);
	memcpy(ip.dst + skip, id->dst.gid + skip, 16 - skip);
	cm_ip_hdr_pack(&ip, priv);
}

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
	req->extended_transport = p->transport == CM_XRC ? CM_EXTENDED_XRC : 0;
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
	id->tid = id_new_tid(cm);
	id->service_id = cm_service_id(call->ps, call->dst.port);
	id->qpn = call->param.qpn;
	id->psn = cm->env.random(cm->env.arg) & CM_PSN_MASK;
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
	id_enter(id, CM_REQ_SENT);
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

/* It has come before: our answer to it was lost, or is still to come. */
static void on_duplicate_rep(struct cm_id *id)
{
	struct cm_msg m = id_msg(id, id->state == CM_ESTABLISHED ? CM_RTU : CM_MRA);

	id->cm->counts[CM_N_DUPLICATE]++;
	if (id->state == CM_REP_RCVD) {
		m.mra.about = CM_ABOUT_REP;
		m.mra.service_timeout = CM_MRA_TIMEOUT;
	} else if (id->state != CM_ESTABLISHED) {
		return;
	}
	cm_post(id->cm, &id->addr, &m);
}

/* To none of ours: whose it is need not wait until its tries are over. */
static void on_stray_rep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	cm->counts[CM_N_UNEXPECTED]++;
	if (!is_of_earlier_weftd(cm, m->rep.remote_comm_id))
		cm_answer_rej(cm, from, m->hdr.tid, m->rep.remote_comm_id, m->rep.local_comm_id,
			CM_ABOUT_REP, CM_REJ_INVALID_COMM_ID);
}

static void rep_event(struct cm_id *id, const struct cm_msg *m)
{
	const struct cm_rep *rep = &m->rep;
	struct cm_event e = {.type = CM_EV_CONNECT_RESPONSE};

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

void on_rep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_rep *rep = &m->rep;
	struct cm_id *id = id_of_request(cm, from, rep->remote_comm_id, m->hdr.tid, CM_REQ_SENT);

	if (!id) {
		id = id_of(cm, from, rep->remote_comm_id, rep->local_comm_id);
		if (id)
			on_duplicate_rep(id);
		else
			on_stray_rep(cm, from, m);
		return;
	}
	id_cancel(id);
	id_set_remote(id, rep->local_comm_id);
	id->remote_qpn = id->transport == CM_XRC ? rep->eecn : rep->qpn;
	id->remote_guid = rep->ca_guid;
	id_enter(id, CM_REP_RCVD);
	rep_event(id, m);
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
	id_enter(id, CM_ESTABLISHED);
	id_send(id, &m, false);
	return 0;
}

/* ---- more time ---- */

void on_mra(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_mra *mra = &m->mra;
	uint8_t timeout =
		mra->service_timeout < CM_MRA_TIMEOUT ? mra->service_timeout : CM_MRA_TIMEOUT;
	struct cm_id *id;

	if (mra->about == CM_ABOUT_REQ)
		id = id_of_request(cm, from, mra->remote_comm_id, m->hdr.tid, CM_REQ_SENT);
	else
		id = id_of(cm, from, mra->remote_comm_id, mra->local_comm_id);
	if (!id || (mra->about != CM_ABOUT_REQ &&
			   (mra->about != CM_ABOUT_REP || id->state != CM_REP_SENT))) {
		cm->counts[CM_N_UNEXPECTED]++;
		if (id)
			suspect_cleared(id);
		return;
	}
	if (id->late || !id->pending) {
		cm->counts[CM_N_DUPLICATE]++;
		return;
	}
	id->late = 1;
	mad_extend(id->pending, cm_timeout_ms(timeout) + cm_timeout_ms(CM_TIMEOUT));
}

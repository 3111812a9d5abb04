// SPDX-License-Identifier: BSD-3-Clause
/* Datagrams: which QP serves a service id. */
#include "cm/sidr.h"

#include <errno.h>
#include <string.h>

#include "cm/accept.h"
#include "cm/answers.h"
#include "cm/connect.h"
#include "cm/held.h"
#include "cm/id.h"
#include "cm/receive.h"
#include "cm/tables.h"

enum { PKEY_DEFAULT = 0xffff };

int sidr_connect(struct cm_id *id, const struct cm_connect_call *call)
{
	struct cm_msg m = {.hdr = {.attr = CM_SIDR_REQ, .tid = id->tid}};
	struct cm_sidr_req *req = &m.sidr_req;

	if (call->param.priv_len > CM_SIDR_REQ_PRIV - CM_IP_HDR_SIZE)
		return -EINVAL;
	req->request_id = id->local_comm;
	req->pkey = PKEY_DEFAULT;
	req->service_id = id->service_id;
	cm_fill_ip_hdr(id, req->priv);
	memcpy(req->priv + CM_IP_HDR_SIZE, call->priv, call->param.priv_len);
	id_enter(id, CM_SIDR_REQ_SENT);
	id_send(id, &m, true);
	return 0;
}

static void refuse(struct cm *cm, const struct mad_addr *to, const struct cm_msg *m, uint8_t status)
{
	struct cm_msg rep = {.hdr = {.attr = CM_SIDR_REP, .tid = m->hdr.tid}};

	rep.sidr_rep.request_id = m->sidr_req.request_id;
	rep.sidr_rep.service_id = m->sidr_req.service_id;
	rep.sidr_rep.status = status;
	cm_post(cm, to, &rep);
}

void on_sidr_req(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	uint32_t request = m->sidr_req.request_id;
	const struct cm_id *id = id_by_remote(cm, request, from->grh.remote);

	if (id) /* it is still to be answered */
		cm->counts[id->tid == m->hdr.tid ? CM_N_DUPLICATE : CM_N_UNEXPECTED]++;
	else if (!answer_again(cm, from, request, m->hdr.tid))
		sidr_request(cm, from, m, true);
}

void sidr_request(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m, bool hold)
{
	const struct cm_sidr_req *req = &m->sidr_req;
	struct cm_event e = {.type = CM_EV_CONNECT_REQUEST};
	uint16_t reason = CM_REJ_UNSUPPORTED;
	struct cm_id *id = NULL;
	struct cm_ip_hdr ip;

	cm_ip_hdr_unpack(req->priv, &ip);
	if (ip.version == 0 && (ip.ip_version == 4 || ip.ip_version == 6))
		id = cm_new_request(cm, from, req->service_id, &ip, CM_F_DATAGRAM, &reason);
	if (!id && hold && reason == CM_REJ_INVALID_SERVICE_ID && cm_hold(cm, from, m))
		return;
	if (!id) {
		if (reason)
			refuse(cm, from, m, CM_SIDR_UNSUPPORTED);
		return;
	}
	id_set_remote(id, req->request_id);
	id->tid = m->hdr.tid;
	id_enter(id, CM_SIDR_REQ_RCVD);
	e.listen_handle = id->listen_handle;
	e.src = id->src;
	e.dst = id->dst;
	e.param.priv_len = CM_SIDR_REQ_PRIV - CM_IP_HDR_SIZE;
	memcpy(e.priv, req->priv + CM_IP_HDR_SIZE, e.param.priv_len);
	id_event(id, &e);
}

int sidr_answer(struct cm_id *id, uint8_t status, const struct cm_params *qp, const uint8_t *priv,
	uint8_t len)
{
	struct cm_msg m = {.hdr = {.attr = CM_SIDR_REP, .tid = id->tid}};
	struct cm_sidr_rep *rep = &m.sidr_rep;

	if (len > CM_SIDR_REP_PRIV)
		return -EINVAL;
	rep->request_id = id->remote_comm;
	rep->status = status;
	if (qp) {
		rep->qpn = qp->qpn;
		rep->qkey = qp->qkey;
	}
	rep->service_id = id->service_id;
	if (len)
		memcpy(rep->priv, priv, len);
	id_send(id, &m, false);
	answer_keep(id, &m);
	id_enter(id, CM_ENDED);
	return 0;
}

void on_sidr_rep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_sidr_rep *rep = &m->sidr_rep;
	struct cm_id *id = id_of_request(cm, from, rep->request_id, m->hdr.tid, CM_SIDR_REQ_SENT);
	struct cm_event e = {.type = CM_EV_ESTABLISHED};

	if (!id) {
		cm->counts[CM_N_UNEXPECTED]++;
		return;
	}
	id_cancel(id);
	id_enter(id, CM_ENDED);
	if (rep->status != CM_SIDR_OK) {
		e.type = CM_EV_UNREACHABLE;
		e.status = rep->status;
	}
	e.param.qpn = rep->qpn;
	e.param.qkey = rep->qkey;
	e.param.priv_len = CM_SIDR_REP_PRIV;
	memcpy(e.priv, rep->priv, CM_SIDR_REP_PRIV);
	id_event(id, &e);
}

// SPDX-License-Identifier: BSD-3-Clause
/* Datagrams: which QP serves a service id. */
#include "cm/sidr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/connect.h"
#include "cm/held.h"
#include "cm/id.h"

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
	id->state = CM_SIDR_REQ_SENT;
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

/* One that was answered: the answer got lost. */
static void on_duplicate(const struct cm_id *id)
{
	id->cm->counts[CM_N_DUPLICATE]++;
	if (id->answer)
		(void)mad_post(&id->cm->agent, &id->addr, id->answer);
}

void on_sidr_req(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_id *id = id_by_remote(cm, m->sidr_req.request_id, from->grh.remote);

	if (id)
		on_duplicate(id);
	else
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
		refuse(cm, from, m, CM_SIDR_UNSUPPORTED);
		return;
	}
	id_set_remote(id, req->request_id);
	id->tid = m->hdr.tid;
	id->state = CM_SIDR_REQ_RCVD;
	e.listen_handle = id->listen_handle;
	e.src = id->src;
	e.dst = id->dst;
	e.param.priv_len = CM_SIDR_REQ_PRIV - CM_IP_HDR_SIZE;
	memcpy(e.priv, req->priv + CM_IP_HDR_SIZE, e.param.priv_len);
	id_event(id, &e);
}

/* Between ids of this machine nothing gets lost; without memory the peer's next try is a new one.
 */
static void keep_answer(struct cm_id *id, const struct cm_msg *m)
{
	struct cm *cm = id->cm;

	if (cm->env.is_local(cm->env.arg, id->addr.grh.remote))
		return;
	id->answer = malloc(MAD_SIZE);
	if (!id->answer)
		id_clear_remote(id);
	else if (cm_msg_pack(m, id->answer))
		memset(id->answer, 0, MAD_SIZE);
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
	keep_answer(id, &m);
	id_send(id, &m, false);
	id->state = CM_ENDED;
	return 0;
}

void on_sidr_rep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_sidr_rep *rep = &m->sidr_rep;
	struct cm_id *id = id_by_comm(cm, rep->request_id);
	struct cm_event e = {.type = CM_EV_ESTABLISHED};

	if (!id || id->state != CM_SIDR_REQ_SENT || !mad_same_peer(&id->addr, from)) {
		cm->counts[CM_N_UNEXPECTED]++;
		return;
	}
	id_cancel(id);
	id->state = CM_ENDED;
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

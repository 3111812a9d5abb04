// SPDX-License-Identifier: BSD-3-Clause
/* Making connections, on the side that is asked: requests, REP, and what makes it stand. */
#include "cm/accept.h"

#include <errno.h>
#include <string.h>

#include "cm/answers.h"
#include "cm/held.h"
#include "cm/id.h"
#include "cm/peers.h"
#include "cm/ports.h"
#include "cm/receive.h"
#include "cm/sidr.h"
#include "cm/suspect.h"
#include "cm/tables.h"

enum {
	ACK_BELOW = 8,    /* with less backlog, each request taken is to be told at once */
	HANDLE_BITS = 24, /* above them the low bits of the epoch */
	HANDLE_MASK = (1 << HANDLE_BITS) - 1,
	NO_ANSWER = 0, /* a reason not to refuse: who asks shall ask again */
};

/* ---- requests ---- */

/* Ids of requests are made by weftd, in the half of the numbers that owners do not use. */
static uint32_t passive_handle(struct cm *cm, uint32_t owner)
{
	uint32_t handle;

	do {
		cm->next_handle = (cm->next_handle + 1) & HANDLE_MASK;
		handle = CM_HANDLE_PASSIVE | cm->epoch << HANDLE_BITS | cm->next_handle;
	} while (id_find(cm, owner, handle));
	return handle;
}

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

/* Does the IP header name the addresses of the packet, which are from->grh's? */
static bool names_its_packet(
	const struct cm_addr *src, const struct cm_addr *dst, const struct mad_addr *from)
{
	return memcmp(src->gid, from->grh.remote, MAD_GID) == 0 &&
	       memcmp(dst->gid, from->grh.local, MAD_GID) == 0;
}

/* The listener that may have one more, or NULL and why not. */
static struct cm_id *willing_listener(struct cm *cm, uint64_t service_id, const struct cm_addr *dst,
	uint32_t flags, uint16_t *reason)
{
	bool near;
	struct cm_id *listener = cm_find_listener(cm, ps_of(service_id), dst, &near);

	if (!listener || !!(listener->flags & CM_F_DATAGRAM) != !!(flags & CM_F_DATAGRAM)) {
		cm->counts[CM_N_NO_LISTENER]++;
		*reason = near ? CM_REJ_CONSUMER_DEFINED : CM_REJ_INVALID_SERVICE_ID;
		return NULL;
	}
	if (listener->backlog > 0)
		return listener;
	cm->counts[CM_N_BACKLOG_FULL]++;
	*reason = CM_REJ_CONSUMER_DEFINED;
	return NULL;
}

/* The listener's, or NULL: there are too many of its kind, or no memory. */
static struct cm_id *new_of_listener(struct cm_id *listener, const struct mad_addr *from)
{
	struct cm *cm = listener->cm;
	uint32_t owner = listener->owner;
	struct cm_peer *peer;
	struct cm_id *id;
	int ret = peer_admit(cm, from->grh.remote, &peer);

	if (ret) {
		cm->counts[ret == -EBUSY ? CM_N_TOO_MANY : CM_N_NO_MEMORY]++;
		return NULL;
	}
	id = id_new(cm, owner, passive_handle(cm, owner), listener->channel);
	if (!id) {
		peer_let_go(cm, peer);
		return NULL;
	}
	id->half_open = peer;
	listener->backlog--;
	id->listen_handle = listener->handle;
	id->ps = listener->ps;
	id->addr = *from;
	return id;
}

struct cm_id *cm_new_request(struct cm *cm, const struct mad_addr *from, uint64_t service_id,
	const struct cm_ip_hdr *ip, uint32_t flags, uint16_t *reason)
{
	struct cm_addr src = addr_of(ip, ip->src, ip->src_port);
	struct cm_addr dst = addr_of(ip, ip->dst, service_id & 0xffff);
	struct cm_id *listener, *id;

	if (!names_its_packet(&src, &dst, from)) {
		cm->counts[CM_N_WRONG_ADDRESS]++;
		*reason = CM_REJ_INVALID_GID;
		return NULL;
	}
	listener = willing_listener(cm, service_id, &dst, flags, reason);
	if (!listener)
		return NULL;
	*reason = NO_ANSWER;
	id = new_of_listener(listener, from);
	if (!id)
		return NULL;
	id_set_comm(id, id_new_comm(cm));
	id->flags = flags;
	id->src = dst;
	id->dst = src;
	id->service_id = service_id;
	id->psn = cm->env.random(cm->env.arg) & CM_PSN_MASK;
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

/* Is it the request that the id is of?  Its sender repeats it byte by byte. */
static bool is_request_of(const struct cm_id *id, const struct cm_msg *m)
{
	return id->tid == m->hdr.tid && id->remote_guid == m->req.ca_guid &&
	       id->remote_qpn == m->req.qpn && id->handle & CM_HANDLE_PASSIVE;
}

void on_req(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	uint32_t comm = m->req.local_comm_id;
	struct cm_id *id = id_by_remote(cm, comm, from->grh.remote);

	if (!id) {
		if (!answer_again(cm, from, comm, m->hdr.tid))
			cm_request(cm, from, m, true);
		return;
	}
	if (is_request_of(id, m)) {
		on_duplicate_req(id, from, m);
		return;
	}
	cm->counts[CM_N_UNEXPECTED]++;
	suspect(id);
}

static bool known_transport(const struct cm_req *req)
{
	return req->transport == CM_RC ||
	       (req->transport == CM_XRC && req->extended_transport == CM_EXTENDED_XRC);
}

/* One that comes from a queue pair to which an id is connected already.  The peer is asked whether
 * it knows of that. */
static bool is_stale(struct cm *cm, const struct mad_addr *from, const struct cm_req *req)
{
	struct cm_id *id = id_by_remote_qp(cm, req->ca_guid, from->grh.remote, req->qpn);

	if (!id)
		return false;
	cm->counts[CM_N_STALE]++;
	suspect(id);
	return true;
}

/* The id of a request, or NULL and why not. */
static struct cm_id *take_request(
	struct cm *cm, const struct mad_addr *from, const struct cm_msg *m, uint16_t *reason)
{
	const struct cm_req *req = &m->req;
	struct cm_ip_hdr ip;

	*reason = CM_REJ_STALE_CONN;
	if (is_stale(cm, from, req))
		return NULL;
	*reason = CM_REJ_UNSUPPORTED;
	cm_ip_hdr_unpack(req->priv, &ip);
	if (ip.version || (ip.ip_version != 4 && ip.ip_version != 6) || !known_transport(req))
		return NULL;
	return cm_new_request(cm, from, req->service_id, &ip, 0, reason);
}

void cm_request(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m, bool hold)
{
	const struct cm_req *req = &m->req;
	uint16_t reason;
	struct cm_id *id = take_request(cm, from, m, &reason);

	if (!id && hold && reason == CM_REJ_INVALID_SERVICE_ID && cm_hold(cm, from, m))
		return;
	if (!id) {
		if (reason != NO_ANSWER)
			cm_answer_rej(
				cm, from, m->hdr.tid, 0, req->local_comm_id, CM_ABOUT_REQ, reason);
		return;
	}
	id_set_remote(id, req->local_comm_id);
	id->tid = m->hdr.tid;
	id->remote_guid = req->ca_guid;
	id->remote_qpn = req->qpn;
	id->transport = req->transport;
	id->local_ack = req->primary.ack_timeout;
	id_enter(id, CM_REQ_RCVD);
	req_event(id, m);
}

/* ---- answers, and after them ---- */

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
	id_enter(id, CM_REP_SENT);
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
	id_enter(id, CM_ESTABLISHED);
	id_event_simple(id, CM_EV_ESTABLISHED, 0);
}

void on_rtu(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	struct cm_id *id = id_of(cm, from, m->rtu.remote_comm_id, m->rtu.local_comm_id);

	if (id && id->state == CM_REP_SENT) {
		established(id);
		return;
	}
	cm->counts[id ? CM_N_DUPLICATE : CM_N_UNEXPECTED]++;
	if (id)
		suspect_cleared(id);
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

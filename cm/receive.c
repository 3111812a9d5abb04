// SPDX-License-Identifier: BSD-3-Clause
/* The agent of the communication manager: what comes, and what was never answered. */
#include "cm/receive.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "cm/accept.h"
#include "cm/connect.h"
#include "cm/disconnect.h"
#include "cm/held.h"
#include "cm/id.h"
#include "cm/ports.h"
#include "cm/sidr.h"
#include "cm/suspect.h"
#include "cm/tables.h"
#include "mad/agents.h"

static void (*const handlers[CM_ATTR_END])(
	struct cm *cm, const struct mad_addr *from, const struct cm_msg *m) = {
	[CM_REQ] = on_req,
	[CM_MRA] = on_mra,
	[CM_REJ] = on_rej,
	[CM_REP] = on_rep,
	[CM_RTU] = on_rtu,
	[CM_DREQ] = on_dreq,
	[CM_DREP] = on_drep,
	[CM_SIDR_REQ] = on_sidr_req,
	[CM_SIDR_REP] = on_sidr_rep,
	[CM_LAP] = on_lap,
	[CM_APR] = on_apr,
};

struct cm_id *id_of(
	struct cm *cm, const struct mad_addr *from, uint32_t local_comm, uint32_t remote_comm)
{
	struct cm_id *id = id_by_comm(cm, local_comm);

	/* 0: none, or none that we know of */
	if (!id || !remote_comm || id->remote_comm != remote_comm ||
		!mad_same_peer(&id->addr, from))
		return NULL;
	return id;
}

struct cm_id *id_of_request(struct cm *cm, const struct mad_addr *from, uint32_t local_comm,
	uint64_t tid, enum cm_state state)
{
	struct cm_id *id = id_by_comm(cm, local_comm);

	if (!id || id->state != state || id->tid != tid || !mad_same_peer(&id->addr, from))
		return NULL;
	return id;
}

/* Alternate paths are not there: says so, or that we do not know the connection. */
void on_lap(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_lap *lap = &m->lap;
	struct cm_id *id = id_of(cm, from, lap->remote_comm_id, lap->local_comm_id);
	struct cm_msg apr = {.hdr = {.attr = CM_APR, .tid = m->hdr.tid}};

	if (!id && is_of_earlier_weftd(cm, lap->remote_comm_id)) {
		cm->counts[CM_N_UNEXPECTED]++;
		return;
	}
	apr.apr.local_comm_id = lap->remote_comm_id;
	apr.apr.remote_comm_id = lap->local_comm_id;
	apr.apr.status =
		id && id->state == CM_ESTABLISHED ? CM_APR_UNSUPPORTED : CM_APR_INVALID_COMM_ID;
	cm_post(cm, from, &apr);
}

/* We have no alternate paths, either: it answers who asked whether the connection is known. */
void on_apr(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_apr *apr = &m->apr;
	struct cm_id *id = id_of(cm, from, apr->remote_comm_id, apr->local_comm_id);

	if (!id)
		cm->counts[CM_N_UNEXPECTED]++;
	else if (apr->status == CM_APR_INVALID_COMM_ID)
		(void)suspect_gone(id);
	else
		suspect_cleared(id);
}

static void trace(const struct cm_msg *m)
{
	char text[512];

	if (!log_enabled(LOG_LVL_DEBUG))
		return;
	cm_msg_print(m, text, sizeof text);
	log_line(LOG_LVL_DEBUG, "cm: %s", text);
}

static void on_mad(struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	struct cm *cm = a->arg;
	struct cm_msg m;

	cm->counts[CM_N_RECEIVED]++;
	if (cm_msg_unpack(mad, &m) || !handlers[m.hdr.attr]) {
		cm->counts[CM_N_MALFORMED]++;
		return;
	}
	trace(&m);
	handlers[m.hdr.attr](cm, from, &m);
}

/* All tries of a message were in vain. */
static void on_done(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response)
{
	struct cm *cm = a->arg;
	struct cm_id *id = s->context;

	(void)response;
	id->pending = NULL;
	cm->counts[CM_N_TIMEOUT]++;
	switch (id->state) {
	case CM_REQ_SENT:
	case CM_REP_SENT:
		id_reject(id, id->state == CM_REQ_SENT ? CM_ABOUT_REQ : CM_ABOUT_REP,
			CM_REJ_TIMEOUT, NULL, 0);
		/* fallthrough */
	case CM_SIDR_REQ_SENT:
		id_event_simple(id, CM_EV_UNREACHABLE, status);
		id_enter(id, CM_ENDED);
		break;
	case CM_ESTABLISHED: /* it was asked whether it knows of that: cm/suspect.h */
	case CM_DREQ_SENT:
		id_event_simple(id, CM_EV_DISCONNECTED, status);
		id_timewait(id);
		break;
	default:
		break;
	}
}

int cm_init(struct cm *cm, struct mad_port *port)
{
	cm->agent = (struct mad_agent){
		.reg = {.qpn = 1,
			.mgmt_class = MAD_CLASS_CM,
			.class_version = CM_CLASS_VERSION,
			.methods = {1ull << MAD_SEND}},
		.receive = on_mad,
		.done = on_done,
		.arg = cm,
	};
	cm->started = cm->env.now(cm->env.arg);
	cm->salt = (uint64_t)cm->env.random(cm->env.arg) << 32 | cm->env.random(cm->env.arg);
	return mad_register(port, &cm->agent);
}

void cm_end(struct cm *cm)
{
	while (cm->ids)
		id_free(cm->ids);
	cm_end_held(cm);
	deadlines_free(&cm->deadlines);
	mad_unregister(&cm->agent);
}

/* Its peer may be disconnecting already: what it sent before found nobody. */
static void hurry_peer(const struct cm_id *id)
{
	struct cm_id *peer = id->remote_comm ? id_by_comm(id->cm, id->remote_comm) : NULL;

	if (peer && peer->state == CM_DREQ_SENT && peer->pending)
		mad_extend(peer->pending, 1);
}

int cm_publish(struct cm *cm, uint32_t owner, const struct cm_publish_call *call)
{
	struct cm_id *id;
	int ret = 0;

	if (id_find(cm, owner, call->handle) ||
		(call->local_comm && id_by_comm(cm, call->local_comm)))
		return -EEXIST;
	if (call->state != CM_IDLE && call->state != CM_LISTEN && call->state != CM_ESTABLISHED &&
		call->state != CM_DREQ_RCVD && call->state != CM_ENDED)
		return -EINVAL;
	id = id_new(cm, owner, call->handle, call->channel);
	if (!id)
		return -ENOMEM;
	id->ps = call->ps;
	id->flags = call->flags;
	id->src = call->src;
	id->dst = call->dst;
	id->addr = mad_addr_of_gids(call->src.gid, call->dst.gid);
	id->qpn = call->qpn;
	id->remote_qpn = call->remote_qpn;
	id->remote_guid = call->remote_guid;
	id->tid = id_new_tid(cm);
	id->taken = 1;
	if (call->local_comm)
		id_set_comm(id, call->local_comm);
	if (call->remote_comm)
		id_set_remote(id, call->remote_comm);
	id_enter(id, call->state);
	if (call->src.port && !(call->handle & CM_HANDLE_PASSIVE))
		ret = bind_take(id, call->ps, &call->src, call->flags);
	/* A connection goes on without its port. */
	if (call->state == CM_ESTABLISHED || call->state == CM_DREQ_RCVD)
		ret = 0;
	if (call->state == CM_LISTEN)
		id->backlog = call->backlog > 0 ? call->backlog : CM_BACKLOG_MAX;
	if (ret)
		id_free(id);
	else
		hurry_peer(id);
	return ret;
}

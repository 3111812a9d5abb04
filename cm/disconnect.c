// SPDX-License-Identifier: BSD-3-Clause
/* Ending connections: REJ, DREQ, DREP, and ids that are destroyed in the middle of something. */
#include "cm/disconnect.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cm/answers.h"
#include "cm/held.h"
#include "cm/id.h"
#include "cm/receive.h"
#include "cm/sidr.h"
#include "cm/suspect.h"
#include "cm/tables.h"

/* In that time a peer has asked once more, whose answer was lost. */
#define LINGER_NS (8 * NSEC_PER_SEC)

int cm_reject(struct cm *cm, uint32_t owner, const struct cm_reject_call *call)
{
	struct cm_id *id = id_find(cm, owner, call->handle);
	uint16_t reason = call->reason ? call->reason : CM_REJ_CONSUMER_DEFINED;

	if (!id)
		return -EINVAL;
	cm_taken(cm, owner, call->handle);
	if (call->priv_len > CM_REJ_PRIV)
		return -EINVAL;
	switch (id->state) {
	case CM_REQ_RCVD:
		id_reject(id, CM_ABOUT_REQ, reason, call->priv, call->priv_len);
		id_enter(id, CM_ENDED);
		return 0;
	case CM_REP_RCVD:
		id_reject(id, CM_ABOUT_REP, reason, call->priv, call->priv_len);
		id_timewait(id);
		return 0;
	case CM_SIDR_REQ_RCVD:
		return sidr_answer(id, CM_SIDR_REJECTED, NULL, call->priv, call->priv_len);
	default:
		return -EINVAL; /* also where the request has gone, as the kernel's CM answers */
	}
}

static uint64_t guid_of(const struct cm_rej *rej)
{
	uint64_t guid = 0;

	for (int i = 0; i < 8; i++)
		guid = guid << 8 | rej->ari[i];
	return guid;
}

/* A requester that gave up waiting may not know our id yet: by its own number and its adapter. */
static struct cm_id *given_up(struct cm *cm, const struct mad_addr *from, const struct cm_rej *rej)
{
	struct cm_id *id = rej->reason == CM_REJ_TIMEOUT
				   ? id_by_remote(cm, rej->local_comm_id, from->grh.remote)
				   : NULL;

	if (!id || id->remote_guid != guid_of(rej) ||
		(id->state != CM_REQ_RCVD && id->state != CM_REP_SENT))
		return NULL;
	return id;
}

/*
 * Whose message was rejected: the one about a request may come from whose number is not known yet;
 * all others name both.
 */
static struct cm_id *rejected_id(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_rej *rej = &m->rej;
	struct cm_id *id = id_of_request(cm, from, rej->remote_comm_id, m->hdr.tid, CM_REQ_SENT);

	if (!id)
		id = given_up(cm, from, rej);
	if (!id && rej->about != CM_ABOUT_REQ)
		id = id_of(cm, from, rej->remote_comm_id, rej->local_comm_id);
	return id;
}

/* The time of waiting is for what stood, on either side's word, and for stale requests. */
static void end_rejected(struct cm_id *id, uint16_t reason)
{
	bool stood = id->state == CM_REP_RCVD || id->state == CM_ESTABLISHED;

	id_cancel(id);
	if (stood || reason == CM_REJ_STALE_CONN)
		id_timewait(id);
	else
		id_enter(id, CM_ENDED);
}

void on_rej(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_rej *rej = &m->rej;
	struct cm_id *id = rejected_id(cm, from, m);
	struct cm_event e = {.type = CM_EV_REJECTED, .status = rej->reason};

	if (!id) {
		if (rej->reason != CM_REJ_TIMEOUT ||
			!cm_unhold(cm, from, rej->local_comm_id, m->hdr.tid))
			cm->counts[CM_N_UNEXPECTED]++;
		return;
	}
	switch (id->state) {
	case CM_REQ_SENT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		break;
	case CM_ESTABLISHED:
		if (suspect_gone(id))
			return;
		break;
	case CM_DREQ_SENT:
		id_event_simple(id, CM_EV_DISCONNECTED, 0);
		id_timewait(id);
		return;
	default:
		cm->counts[CM_N_DUPLICATE]++;
		return;
	}
	e.param.priv_len = CM_REJ_PRIV;
	memcpy(e.priv, rej->priv, CM_REJ_PRIV);
	id_event(id, &e);
	end_rejected(id, rej->reason);
}

static void send_dreq(struct cm_id *id, bool repeat)
{
	struct cm_msg m = id_msg(id, CM_DREQ);

	m.hdr.tid = id_new_tid(id->cm);
	m.dreq.remote_qpn = id->remote_qpn;
	id_send(id, &m, repeat);
}

static void send_drep(struct cm_id *id)
{
	struct cm_msg m = id_msg(id, CM_DREP);

	m.hdr.tid = id->dreq_tid;
	id_send(id, &m, false);
}

int cm_disconnect(struct cm *cm, uint32_t owner, uint32_t handle)
{
	struct cm_id *id = id_find(cm, owner, handle);

	if (!id)
		return -EINVAL;
	switch (id->state) {
	case CM_ESTABLISHED:
		id_enter(id, CM_DREQ_SENT);
		send_dreq(id, true);
		return 0;
	case CM_DREQ_RCVD:
		send_drep(id);
		id_timewait(id);
		return 0;
	case CM_DREQ_SENT:
	case CM_TIMEWAIT:
	case CM_ENDED:
		return 0; /* it is on its way, or over */
	default:
		return -EINVAL;
	}
}

/* From one that is not known: it has ended, as its peer asks for. */
static void on_stray_dreq(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	struct cm_msg drep = {.hdr = {.attr = CM_DREP, .tid = m->hdr.tid}};

	cm->counts[CM_N_DUPLICATE]++;
	drep.drep.local_comm_id = m->dreq.remote_comm_id;
	drep.drep.remote_comm_id = m->dreq.local_comm_id;
	cm_post(cm, from, &drep);
}

static void peer_disconnects(struct cm_id *id, uint64_t tid)
{
	id->dreq_tid = tid;
	switch (id->state) {
	case CM_REP_SENT: /* the RTU was lost */
	case CM_REP_RCVD:
	case CM_ESTABLISHED:
		id_cancel(id);
		id_enter(id, CM_DREQ_RCVD);
		id_event_simple(id, CM_EV_DISCONNECTED, 0);
		break;
	case CM_DREQ_SENT: /* both at the same time */
		send_drep(id);
		id_event_simple(id, CM_EV_DISCONNECTED, 0);
		id_timewait(id);
		break;
	default:
		id->cm->counts[CM_N_DUPLICATE]++;
	}
}

void on_dreq(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	const struct cm_dreq *dreq = &m->dreq;
	struct cm_id *id = id_of(cm, from, dreq->remote_comm_id, dreq->local_comm_id);

	/* Its owner may not have published it again yet: the peer tries again. */
	if (!id && is_of_earlier_weftd(cm, dreq->remote_comm_id))
		cm->counts[CM_N_UNEXPECTED]++;
	else if (!id || id->state == CM_TIMEWAIT)
		on_stray_dreq(cm, from, m);
	else if (dreq->remote_qpn != (id->qpn & CM_QPN_MASK))
		cm->counts[CM_N_UNEXPECTED]++;
	else
		peer_disconnects(id, m->hdr.tid);
}

void on_drep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m)
{
	struct cm_id *id = id_of(cm, from, m->drep.remote_comm_id, m->drep.local_comm_id);

	if (!id || id->state != CM_DREQ_SENT) {
		cm->counts[CM_N_UNEXPECTED]++;
		return;
	}
	id_event_simple(id, CM_EV_DISCONNECTED, 0);
	id_timewait(id);
}

/* Tells the peer what it must know when our side vanishes. */
static void farewell(struct cm_id *id)
{
	switch (id->state) {
	case CM_REQ_SENT:
		id_reject(id, CM_ABOUT_REQ, CM_REJ_TIMEOUT, NULL, 0);
		break;
	case CM_REQ_RCVD:
		id_reject(id, CM_ABOUT_REQ, CM_REJ_CONSUMER_DEFINED, NULL, 0);
		break;
	case CM_REP_SENT:
		id_reject(id, CM_ABOUT_OTHER, CM_REJ_CONSUMER_DEFINED, NULL, 0);
		break;
	case CM_REP_RCVD:
		id_reject(id, CM_ABOUT_REP, CM_REJ_CONSUMER_DEFINED, NULL, 0);
		break;
	case CM_ESTABLISHED:
		send_dreq(id, false);
		break;
	case CM_DREQ_RCVD:
		send_drep(id);
		break;
	case CM_SIDR_REQ_RCVD:
		(void)sidr_answer(id, CM_SIDR_REJECTED, NULL, NULL, 0);
		break;
	default:
		break;
	}
}

/*
 * What an id leaves behind whose peer is on another machine: for a while its messages, if they come
 * again, find somebody, and its request, if the network repeats it, is none.
 */
static void leave_word(struct cm_id *id)
{
	struct cm *cm = id->cm;
	struct cm_msg m = id_msg(id, CM_REJ);

	if (!id_is_far(id))
		return;
	cm->linger_until = cm->env.now(cm->env.arg) + LINGER_NS;
	if (!(id->handle & CM_HANDLE_PASSIVE) || id->state < CM_ESTABLISHED)
		return;
	m.rej.about = CM_ABOUT_REQ;
	m.rej.reason = CM_REJ_STALE_CONN;
	answer_keep(id, &m);
}

int cm_destroy(struct cm *cm, uint32_t owner, uint32_t handle)
{
	struct cm_id *id = id_find(cm, owner, handle);

	if (!id)
		return 0;
	cm_taken(cm, owner, handle);
	farewell(id);
	leave_word(id);
	id_free(id);
	return 0;
}

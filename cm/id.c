// SPDX-License-Identifier: BSD-3-Clause
/* Ids: tables, life, what they send. */
#include "cm/id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cm/answers.h"
#include "cm/held.h"
#include "cm/peers.h"
#include "cm/ports.h"
#include "cm/tables.h"

static const char *const count_names[CM_N_COUNT] = {
	[CM_N_SENT] = "sent",
	[CM_N_RECEIVED] = "received",
	[CM_N_DUPLICATE] = "duplicate",
	[CM_N_MALFORMED] = "malformed",
	[CM_N_UNEXPECTED] = "unexpected",
	[CM_N_WRONG_ADDRESS] = "wrong_address",
	[CM_N_NO_LISTENER] = "no_listener",
	[CM_N_BACKLOG_FULL] = "backlog_full",
	[CM_N_TOO_MANY] = "too_many_of_one_host",
	[CM_N_STALE] = "stale",
	[CM_N_TIMEOUT] = "timeout",
	[CM_N_NO_MEMORY] = "no_memory",
};

const char *cm_count_name(enum cm_count which)
{
	return count_names[which];
}

/* ---- numbers ---- */

enum { EPOCH_MASK = (1 << CM_EPOCH_BITS) - 1 };

/* So long after its start weftd may not know connections that exist. */
#define ADOPT_NS (20 * NSEC_PER_SEC)

uint32_t id_new_comm(struct cm *cm)
{
	uint32_t comm;

	do
		comm = (cm->env.random(cm->env.arg) & ~EPOCH_MASK) | (cm->epoch & EPOCH_MASK);
	while (!comm || id_by_comm(cm, comm));
	return comm;
}

bool is_of_earlier_weftd(const struct cm *cm, uint32_t local_comm)
{
	uint64_t age = cm->env.now(cm->env.arg) - cm->started;

	return ((local_comm ^ cm->epoch) & EPOCH_MASK) && age < ADOPT_NS;
}

uint64_t id_new_tid(const struct cm *cm)
{
	return mad_tid(&cm->agent, cm->env.random(cm->env.arg));
}

/* ---- life ---- */

struct cm_id *id_new(struct cm *cm, uint32_t owner, uint32_t handle, uint32_t channel)
{
	struct cm_id *id = cm->n_ids < CM_IDS_MAX ? calloc(1, sizeof *id) : NULL;

	if (!id) {
		cm->counts[CM_N_NO_MEMORY]++;
		return NULL;
	}
	id->cm = cm;
	id->channel = channel;
	id_set_handle(id, owner, handle);
	id->next = cm->ids;
	if (id->next)
		id->next->prev = id;
	cm->ids = id;
	cm->n_ids++;
	return id;
}

static void leave_peer(struct cm_id *id)
{
	peer_let_go(id->cm, id->half_open);
	id->half_open = NULL;
}

void id_free(struct cm_id *id)
{
	struct cm *cm = id->cm;

	id_cancel(id);
	if (id->state == CM_LISTEN)
		cm_listener_gone(cm, id);
	bind_release(id);
	leave_peer(id);
	deadline_clear(&cm->deadlines, &id->timewait);
	id_leave_tables(id);
	if (id->prev)
		id->prev->next = id->next;
	else
		cm->ids = id->next;
	if (id->next)
		id->next->prev = id->prev;
	cm->n_ids--;
	free(id);
}

static bool is_half_open(enum cm_state state)
{
	return state == CM_REQ_RCVD || state == CM_REP_SENT || state == CM_SIDR_REQ_RCVD;
}

static bool is_connected(enum cm_state state)
{
	return state == CM_ESTABLISHED || state == CM_REP_SENT || state == CM_REP_RCVD;
}

void id_enter(struct cm_id *id, enum cm_state state)
{
	id->state = state;
	if (!is_half_open(state))
		leave_peer(id);
	if (is_connected(state))
		id_set_remote_qp(id);
	else
		id_clear_remote_qp(id);
	if (state == CM_ENDED)
		id_clear_remote(id);
}

bool id_is_far(const struct cm_id *id)
{
	const struct cm *cm = id->cm;

	return id->addr.has_grh && !cm->env.is_local(cm->env.arg, id->addr.grh.remote);
}

/* ---- events ---- */

/*
 * A request that nobody has accepted: the program may not have given it a context yet, and hears
 * by its rdma_accept() that the peer gave up.  So does the kernel.
 */
static bool is_mute(const struct cm_id *id)
{
	return id->listen_handle && !id->accepted;
}

void id_event(struct cm_id *id, struct cm_event *e)
{
	struct cm *cm = id->cm;

	if (is_mute(id) && e->type != CM_EV_CONNECT_REQUEST)
		return;
	e->handle = id->handle;
	e->local_comm = id->local_comm;
	e->remote_comm = id->remote_comm;
	e->remote_guid = id->remote_guid;
	e->ps = id->ps;
	e->datagram = !!(id->flags & CM_F_DATAGRAM);
	cm->env.event(cm->env.arg, id->owner, id->channel, e, cm_event_size(e));
}

void id_event_simple(struct cm_id *id, uint32_t type, int status)
{
	struct cm_event e = {.type = type, .status = status};

	id_event(id, &e);
}

/* ---- sending ---- */

void cm_post(struct cm *cm, const struct mad_addr *to, struct cm_msg *m)
{
	uint8_t mad[MAD_SIZE];

	if (cm_msg_pack(m, mad))
		return;
	cm->counts[CM_N_SENT]++;
	(void)mad_post(&cm->agent, to, mad);
}

void id_cancel(struct cm_id *id)
{
	if (id->pending)
		mad_cancel(id->pending);
	id->pending = NULL;
}

void id_repeat(struct cm_id *id, const struct cm_msg *m, uint32_t timeout_ms, uint32_t retries)
{
	struct cm *cm = id->cm;
	uint8_t mad[MAD_SIZE];

	id_cancel(id);
	id->late = 0;
	if (cm_msg_pack(m, mad))
		return;
	cm->counts[CM_N_SENT]++;
	/* Without memory to repeat it, once has to do. */
	if (mad_send(&cm->agent, &id->addr, mad, timeout_ms, retries, false, id, &id->pending))
		(void)mad_post(&cm->agent, &id->addr, mad);
}

void id_send(struct cm_id *id, struct cm_msg *m, bool repeat)
{
	if (repeat) {
		id_repeat(id, m, cm_timeout_ms(CM_TIMEOUT), CM_RETRIES);
		return;
	}
	id_cancel(id);
	id->late = 0;
	cm_post(id->cm, &id->addr, m);
}

struct cm_msg id_msg(const struct cm_id *id, uint16_t attr)
{
	struct cm_msg m = {.hdr = {.attr = attr, .tid = id->tid}};

	/* The two ids come first in all messages that have them. */
	m.rtu.local_comm_id = id->local_comm;
	m.rtu.remote_comm_id = id->remote_comm;
	return m;
}

void id_reject(struct cm_id *id, uint8_t about, uint16_t reason, const uint8_t *priv, uint8_t len)
{
	struct cm_msg m = id_msg(id, CM_REJ);

	m.rej.about = about;
	m.rej.reason = reason;
	if (reason == CM_REJ_TIMEOUT) {
		m.rej.ari_length = 8;
		for (int i = 0; i < 8; i++)
			m.rej.ari[i] = id->cm->ca_guid >> (56 - 8 * i);
	}
	if (len)
		memcpy(m.rej.priv, priv, len < CM_REJ_PRIV ? len : CM_REJ_PRIV);
	id_send(id, &m, false);
	if (!(id->handle & CM_HANDLE_PASSIVE))
		return;
	m.rej.about = CM_ABOUT_REQ; /* of whom had no other answer */
	answer_keep(id, &m);
}

void cm_answer_rej(struct cm *cm, const struct mad_addr *from, uint64_t tid, uint32_t local_comm,
	uint32_t remote_comm, uint8_t about, uint16_t reason)
{
	struct cm_msg m = {.hdr = {.attr = CM_REJ, .tid = tid}};

	m.rej.local_comm_id = local_comm;
	m.rej.remote_comm_id = remote_comm;
	m.rej.about = about;
	m.rej.reason = reason;
	cm_post(cm, from, &m);
}

void id_timewait(struct cm_id *id)
{
	struct cm *cm = id->cm;
	uint32_t ms = cm_timewait_ms(id->local_ack ? id->local_ack : CM_LIFETIME + 1);

	id_cancel(id);
	id_enter(id, CM_TIMEWAIT);
	(void)deadline_set(&cm->deadlines, &id->timewait,
		cm->env.now(cm->env.arg) + (uint64_t)ms * NSEC_PER_MSEC);
}

/* ---- of all ids ---- */

bool cm_any(const struct cm *cm)
{
	return cm->n_ids || cm->linger_until;
}

void cm_run(struct cm *cm)
{
	uint64_t now = cm->env.now(cm->env.arg);
	struct deadline *d;

	cm_run_held(cm);
	while ((d = deadline_pop(&cm->deadlines, now))) {
		struct cm_id *id = (struct cm_id *)d;

		id_event_simple(id, CM_EV_TIMEWAIT_EXIT, 0);
		id_enter(id, CM_ENDED);
	}
	if (now >= cm->linger_until)
		cm->linger_until = 0;
}

uint64_t cm_next(const struct cm *cm)
{
	uint64_t next =
		deadline_earlier(deadline_next(&cm->deadlines), deadline_next(&cm->held_until));

	return deadline_earlier(next, cm->linger_until);
}

void cm_channel_gone(struct cm *cm, uint32_t owner, uint32_t channel)
{
	for (struct cm_id *id = cm->ids, *next; id; id = next) {
		next = id->next;
		if (id->owner == owner && id->channel == channel)
			cm_destroy(cm, owner, id->handle);
	}
}

void cm_owner_gone(struct cm *cm, uint32_t owner)
{
	for (struct cm_id *id = cm->ids, *next; id; id = next) {
		next = id->next;
		if (id->owner == owner)
			cm_destroy(cm, owner, id->handle);
	}
	loans_end(cm, owner);
	cm_held_owner_gone(cm, owner);
}

int cm_migrate(struct cm *cm, uint32_t owner, uint32_t handle, uint32_t channel)
{
	struct cm_id *id = id_find(cm, owner, handle);

	if (id) {
		id->channel = channel;
		id->taken = 1;
	}
	return 0;
}

void cm_taken(struct cm *cm, uint32_t owner, uint32_t handle)
{
	struct cm_id *id = id_find(cm, owner, handle), *listener;

	if (!id || id->taken || !id->listen_handle)
		return;
	id->taken = 1;
	listener = id_find(cm, owner, id->listen_handle);
	if (listener && listener->state == CM_LISTEN)
		listener->backlog++;
}

// SPDX-License-Identifier: BSD-3-Clause
/* Ids: tables, life, what they send. */
#include "cm/id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cm/held.h"
#include "cm/ports.h"

static const char *const count_names[CM_N_COUNT] = {
	[CM_N_SENT] = "sent",
	[CM_N_RECEIVED] = "received",
	[CM_N_DUPLICATE] = "duplicate",
	[CM_N_MALFORMED] = "malformed",
	[CM_N_UNEXPECTED] = "unexpected",
	[CM_N_WRONG_ADDRESS] = "wrong_address",
	[CM_N_NO_LISTENER] = "no_listener",
	[CM_N_BACKLOG_FULL] = "backlog_full",
	[CM_N_STALE] = "stale",
	[CM_N_TIMEOUT] = "timeout",
	[CM_N_NO_MEMORY] = "no_memory",
};

const char *cm_count_name(enum cm_count which)
{
	return count_names[which];
}

static uint32_t mix(uint32_t a, uint32_t b)
{
	return ((a * 0x9e3779b1u) ^ (b * 0x85ebca6bu)) >> 18;
}

_Static_assert(CM_BUCKETS == 1 << (32 - 18), "the shift above");

static uint32_t gid_word(const uint8_t gid[16])
{
	uint32_t w[4];

	memcpy(w, gid, sizeof w);
	return w[0] ^ w[1] ^ w[2] ^ w[3];
}

struct cm_id *id_find(const struct cm *cm, uint32_t owner, uint32_t handle)
{
	struct cm_id *id = cm->by_handle[mix(owner, handle)];

	while (id && (id->owner != owner || id->handle != handle))
		id = id->by_handle;
	return id;
}

struct cm_id *id_new(struct cm *cm, uint32_t owner, uint32_t handle, uint32_t channel)
{
	struct cm_id **bucket = &cm->by_handle[mix(owner, handle)];
	struct cm_id *id = cm->n_ids < CM_IDS_MAX ? calloc(1, sizeof *id) : NULL;

	if (!id) {
		cm->counts[CM_N_NO_MEMORY]++;
		return NULL;
	}
	id->cm = cm;
	id->owner = owner;
	id->handle = handle;
	id->channel = channel;
	id->by_handle = *bucket;
	*bucket = id;
	id->next = cm->ids;
	if (id->next)
		id->next->prev = id;
	cm->ids = id;
	cm->n_ids++;
	return id;
}

uint32_t id_new_comm(struct cm *cm)
{
	uint32_t comm;

	do {
		cm->next_comm = (cm->next_comm + 1) & 0xffffff;
		comm = (cm->epoch & 0xff) << 24 | cm->next_comm;
	} while (!comm || id_by_comm(cm, comm));
	return comm;
}

void id_set_comm(struct cm_id *id, uint32_t comm)
{
	struct cm_id **bucket = &id->cm->by_comm[mix(comm, 0)];

	id->local_comm = comm;
	id->by_comm = *bucket;
	*bucket = id;
}

struct cm_id *id_by_comm(const struct cm *cm, uint32_t local_comm)
{
	struct cm_id *id = cm->by_comm[mix(local_comm, 0)];

	while (id && id->local_comm != local_comm)
		id = id->by_comm;
	return id;
}

void id_clear_remote(struct cm_id *id)
{
	uint32_t bucket = mix(id->remote_comm, gid_word(id->addr.grh.remote));
	struct cm_id **link = &id->cm->by_remote[bucket];

	if (!id->remote_comm)
		return;
	while (*link && *link != id)
		link = &(*link)->by_remote;
	if (*link)
		*link = id->by_remote;
	id->remote_comm = 0;
}

void id_set_remote(struct cm_id *id, uint32_t remote_comm)
{
	struct cm_id **bucket = &id->cm->by_remote[mix(remote_comm, gid_word(id->addr.grh.remote))];

	id_clear_remote(id);
	id->remote_comm = remote_comm;
	id->by_remote = *bucket;
	*bucket = id;
}

struct cm_id *id_by_remote(const struct cm *cm, uint32_t remote_comm, const uint8_t remote_gid[16])
{
	struct cm_id *id = cm->by_remote[mix(remote_comm, gid_word(remote_gid))];

	while (id && (id->remote_comm != remote_comm || memcmp(id->addr.grh.remote, remote_gid,
								sizeof id->addr.grh.remote) != 0))
		id = id->by_remote;
	return id;
}

static bool is_connected(const struct cm_id *id)
{
	return id->state == CM_ESTABLISHED || id->state == CM_REP_SENT || id->state == CM_REP_RCVD;
}

/* Only peers on other machines can lose track of a connection; ours are known to have died. */
struct cm_id *id_by_remote_qp(
	const struct cm *cm, uint64_t guid, const uint8_t gid[16], uint32_t qpn)
{
	if (cm->env.is_local(cm->env.arg, gid))
		return NULL;
	for (struct cm_id *id = cm->ids; id; id = id->next)
		if (id->remote_qpn == qpn && id->remote_guid == guid && is_connected(id) &&
			memcmp(id->addr.grh.remote, gid, sizeof id->addr.grh.remote) == 0)
			return id;
	return NULL;
}

static void unchain_handle(struct cm_id *id)
{
	struct cm_id **link = &id->cm->by_handle[mix(id->owner, id->handle)];

	while (*link && *link != id)
		link = &(*link)->by_handle;
	if (*link)
		*link = id->by_handle;
}

static void unchain_comm(struct cm_id *id)
{
	struct cm_id **link = &id->cm->by_comm[mix(id->local_comm, 0)];

	while (*link && *link != id)
		link = &(*link)->by_comm;
	if (*link)
		*link = id->by_comm;
}

void id_free(struct cm_id *id)
{
	struct cm *cm = id->cm;

	id_cancel(id);
	if (id->state == CM_LISTEN)
		cm_listener_gone(cm, id);
	bind_release(id);
	deadline_clear(&cm->deadlines, &id->timewait);
	unchain_handle(id);
	if (id->local_comm)
		unchain_comm(id);
	id_clear_remote(id);
	if (id->prev)
		id->prev->next = id->next;
	else
		cm->ids = id->next;
	if (id->next)
		id->next->prev = id->prev;
	cm->n_ids--;
	free(id->answer);
	free(id);
}

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

void id_send(struct cm_id *id, struct cm_msg *m, bool repeat)
{
	struct cm *cm = id->cm;
	uint8_t mad[MAD_SIZE];

	id_cancel(id);
	id->late = 0;
	if (!repeat) {
		cm_post(cm, &id->addr, m);
		return;
	}
	if (cm_msg_pack(m, mad))
		return;
	cm->counts[CM_N_SENT]++;
	/* Without memory to repeat it, once has to do. */
	if (mad_send(&cm->agent, &id->addr, mad, cm_timeout_ms(CM_TIMEOUT), CM_RETRIES, false, id,
		    &id->pending))
		cm_post(cm, &id->addr, m);
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
	uint8_t ack = id->local_ack ? id->local_ack : CM_LIFETIME + 1;

	id_cancel(id);
	id->state = CM_TIMEWAIT;
	/* Twice the life of a packet, and the delay of an acknowledgement. */
	(void)deadline_set(&cm->deadlines, &id->timewait,
		cm->env.now(cm->env.arg) + (uint64_t)cm_timeout_ms(ack + 1) * NSEC_PER_MSEC);
}

/* ---- of all ids ---- */

void cm_run(struct cm *cm)
{
	uint64_t now = cm->env.now(cm->env.arg);
	struct deadline *d;

	cm_run_held(cm);
	while ((d = deadline_pop(&cm->deadlines, now))) {
		struct cm_id *id = (struct cm_id *)d;

		if (!id->owner) {
			id_free(id);
			continue;
		}
		id->state = CM_ENDED;
		id_event_simple(id, CM_EV_TIMEWAIT_EXIT, 0);
	}
}

uint64_t cm_next(const struct cm *cm)
{
	uint64_t a = deadline_next(&cm->deadlines), b = deadline_next(&cm->held_until);

	return !a || (b && b < a) ? b : a;
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

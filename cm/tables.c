// SPDX-License-Identifier: BSD-3-Clause
/* Peers choose what some of these keys are: nobody but us knows the salt of their hashes. */
#include "cm/tables.h"

#include <string.h>

#include "base/hash.h"

/* ---- one table ---- */

static void leave(struct cm_id *id, enum cm_table t)
{
	struct cm_link *l = &id->in[t];

	if (!l->link)
		return;
	*l->link = l->next;
	if (l->next)
		l->next->in[t].link = l->link;
	*l = (struct cm_link){0};
}

static void enter(struct cm_id *id, enum cm_table t, uint64_t hash)
{
	struct cm_id **bucket = &id->cm->tables[t][hash % CM_BUCKETS];
	struct cm_link *l = &id->in[t];

	leave(id, t);
	*l = (struct cm_link){*bucket, bucket};
	if (l->next)
		l->next->in[t].link = &l->next;
	*bucket = id;
}

static struct cm_id *first(const struct cm *cm, enum cm_table t, uint64_t hash)
{
	return cm->tables[t][hash % CM_BUCKETS];
}

static bool has_gid(const struct cm_id *id, const uint8_t gid[16])
{
	return memcmp(id->addr.grh.remote, gid, MAD_GID) == 0;
}

/* ---- by owner and handle ---- */

static uint64_t hash_of_handle(const struct cm *cm, uint32_t owner, uint32_t handle)
{
	return hash_mix(cm->salt ^ ((uint64_t)owner << 32 | handle));
}

void id_set_handle(struct cm_id *id, uint32_t owner, uint32_t handle)
{
	id->owner = owner;
	id->handle = handle;
	enter(id, CM_BY_HANDLE, hash_of_handle(id->cm, owner, handle));
}

struct cm_id *id_find(const struct cm *cm, uint32_t owner, uint32_t handle)
{
	struct cm_id *id = first(cm, CM_BY_HANDLE, hash_of_handle(cm, owner, handle));

	while (id && (id->owner != owner || id->handle != handle))
		id = id->in[CM_BY_HANDLE].next;
	return id;
}

/* ---- by communication ids ---- */

void id_set_comm(struct cm_id *id, uint32_t comm)
{
	id->local_comm = comm;
	enter(id, CM_BY_COMM, hash_mix(id->cm->salt ^ comm));
}

struct cm_id *id_by_comm(const struct cm *cm, uint32_t local_comm)
{
	struct cm_id *id = first(cm, CM_BY_COMM, hash_mix(cm->salt ^ local_comm));

	while (id && id->local_comm != local_comm)
		id = id->in[CM_BY_COMM].next;
	return id;
}

static uint64_t hash_of_remote(const struct cm *cm, uint32_t remote_comm, const uint8_t gid[16])
{
	return hash_bytes(gid, MAD_GID, cm->salt ^ remote_comm);
}

void id_set_remote(struct cm_id *id, uint32_t remote_comm)
{
	id->remote_comm = remote_comm;
	enter(id, CM_BY_REMOTE, hash_of_remote(id->cm, remote_comm, id->addr.grh.remote));
}

void id_clear_remote(struct cm_id *id)
{
	leave(id, CM_BY_REMOTE);
	id->remote_comm = 0;
}

struct cm_id *id_by_remote(const struct cm *cm, uint32_t remote_comm, const uint8_t remote_gid[16])
{
	struct cm_id *id = first(cm, CM_BY_REMOTE, hash_of_remote(cm, remote_comm, remote_gid));

	while (id && (id->remote_comm != remote_comm || !has_gid(id, remote_gid)))
		id = id->in[CM_BY_REMOTE].next;
	return id;
}

/* ---- by the peer's queue pair ---- */

static uint64_t hash_of_qp(const struct cm *cm, uint64_t guid, const uint8_t gid[16], uint32_t qpn)
{
	return hash_bytes(gid, MAD_GID, hash_mix(cm->salt ^ guid) ^ qpn);
}

/* Only peers on other machines can lose track of a connection; ours are known to have died. */
void id_set_remote_qp(struct cm_id *id)
{
	const struct cm *cm = id->cm;
	const uint8_t *gid = id->addr.grh.remote;

	if (!cm->env.is_local(cm->env.arg, gid))
		enter(id, CM_BY_REMOTE_QP, hash_of_qp(cm, id->remote_guid, gid, id->remote_qpn));
}

void id_clear_remote_qp(struct cm_id *id)
{
	leave(id, CM_BY_REMOTE_QP);
}

struct cm_id *id_by_remote_qp(
	const struct cm *cm, uint64_t guid, const uint8_t gid[16], uint32_t qpn)
{
	struct cm_id *id = first(cm, CM_BY_REMOTE_QP, hash_of_qp(cm, guid, gid, qpn));

	while (id && (id->remote_qpn != qpn || id->remote_guid != guid || !has_gid(id, gid)))
		id = id->in[CM_BY_REMOTE_QP].next;
	return id;
}

void id_leave_tables(struct cm_id *id)
{
	for (int t = 0; t < CM_TABLES; t++)
		leave(id, t);
}

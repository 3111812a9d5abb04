// SPDX-License-Identifier: BSD-3-Clause
/*
 * Multicast groups that ids have joined.  On RoCE v2 the group's GID is its address, so that a
 * join needs nobody's answer: it is known at once and reported as an event of our own.  Whether
 * datagrams come is the QP's affair, which is attached when the program takes that event.
 */
#include "rdmacm/mcast.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/gid.h"
#include "base/log.h"
#include "rdmacm/address.h"
#include "rdmacm/channel.h"
#include "rdmacm/device.h"
#include "rdmacm/event.h"

enum { MULTICAST_QPN = 0xffffff, HOP_LIMIT = 64 };

/* A join of an id; list and counts are under the id's mutex. */
struct join {
	struct join *next;
	uint32_t number; /* in the events about it */
	enum rdma_cm_mc_join_flags flags;
	union ibv_gid group;
	void *context;
	bool attached;
	uint32_t n_events, n_acked;
};

/* The GID of a group: IPv4 is mapped, as in all GIDs of RoCE v2. */
static int group_of(const struct sockaddr *sa, union ibv_gid *group)
{
	struct cm_addr addr;
	int ret = addr_from_sockaddr(sa, &addr);

	if (ret || addr_is_any(&addr))
		return -EINVAL;
	memcpy(group->raw, addr.gid, sizeof group->raw);
	return 0;
}

/* ---- joining ---- */

/* The newest comes last: of two joins of one group the older is left first. */
static void enter(struct ident *id, struct join *j)
{
	struct join **link = &id->joins;

	pthread_mutex_lock(&id->mutex);
	j->number = ++id->last_join;
	while (*link)
		link = &(*link)->next;
	*link = j;
	pthread_mutex_unlock(&id->mutex);
}

static struct join **find_number(struct ident *id, uint32_t number)
{
	struct join **link = &id->joins;

	while (*link && (*link)->number != number)
		link = &(*link)->next;
	return link;
}

static int join_group(struct ident *id, const struct sockaddr *addr,
	enum rdma_cm_mc_join_flags flags, void *context)
{
	struct cm_event e = {.type = RDMA_CM_EVENT_MULTICAST_JOIN, .flags = CM_E_LOCAL};
	struct join *j;
	union ibv_gid group;
	int ret = group_of(addr, &group);

	if (ret)
		return ret;
	if (!id->id.verbs || (id->state != ID_BOUND && id->state != ID_ADDR_RESOLVED) ||
		id->id.qp_type != IBV_QPT_UD)
		return log_refused(-EINVAL, "rdma_join_multicast refused: it is for an id of "
					    "RDMA_PS_UDP that has an address");
	j = calloc(1, sizeof *j);
	if (!j)
		return -ENOMEM;
	j->flags = flags;
	j->group = group;
	j->context = context;
	enter(id, j);
	e.handle = id->handle;
	e.join = j->number;
	ret = channel_put(to_channel(id->id.channel), &e, cm_event_size(&e));
	if (!ret)
		return 0;
	pthread_mutex_lock(&id->mutex);
	*find_number(id, j->number) = j->next;
	pthread_mutex_unlock(&id->mutex);
	free(j);
	return ret;
}

int rdma_join_multicast_ex(
	struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	const uint32_t all = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	int ret;

	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return fail(ENOTSUP);
	if (attr->comp_mask != all || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return fail(EINVAL);
	ret = join_group(to_ident(id), attr->addr, attr->join_flags, context);
	return ret ? fail(ret) : ident_complete(to_ident(id));
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = addr,
	};

	return rdma_join_multicast_ex(id, &attr, context);
}

/* ---- the event ---- */

static void fill_event(
	const struct ident *id, const struct join *j, int sgid_index, struct rdma_cm_event *event)
{
	struct rdma_ud_param *u = &event->param.ud;

	u->private_data = j->context;
	u->qp_num = MULTICAST_QPN;
	u->qkey = RDMA_UDP_QKEY;
	u->ah_attr.is_global = 1;
	u->ah_attr.port_num = id->id.port_num;
	u->ah_attr.grh.dgid = j->group;
	u->ah_attr.grh.sgid_index = sgid_index;
	u->ah_attr.grh.hop_limit = HOP_LIMIT;
	u->ah_attr.grh.traffic_class = id->tos;
}

/* One that only sends is no member. */
static int attach(struct ident *id, struct join *j)
{
	int ret;

	if (!id->id.qp || j->flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
		return 0;
	ret = -ibv_attach_mcast(id->id.qp, &j->group, 0);
	j->attached = !ret;
	return ret;
}

struct join *join_take_event(struct ident *id, uint32_t number, struct rdma_cm_event *event)
{
	int sgid_index = device_gid_index(id->src.gid);
	struct join *j;

	pthread_mutex_lock(&id->mutex);
	j = *find_number(id, number);
	if (j)
		j->n_events++;
	pthread_mutex_unlock(&id->mutex);
	if (!j)
		return NULL;
	event->status = sgid_index < 0 ? -EADDRNOTAVAIL : attach(id, j);
	if (event->status)
		event->event = RDMA_CM_EVENT_MULTICAST_ERROR;
	fill_event(id, j, sgid_index < 0 ? 0 : sgid_index, event);
	return j;
}

void join_ack_event(struct ident *id, struct join *j)
{
	pthread_mutex_lock(&id->mutex);
	j->n_acked++;
	pthread_cond_broadcast(&id->acked);
	pthread_mutex_unlock(&id->mutex);
}

/* ---- leaving ---- */

static struct join *take_out(struct ident *id, const union ibv_gid *group)
{
	struct join **link = &id->joins, *j;

	pthread_mutex_lock(&id->mutex);
	while (*link && memcmp(&(*link)->group, group, sizeof *group) != 0)
		link = &(*link)->next;
	j = *link;
	if (j)
		*link = j->next;
	pthread_mutex_unlock(&id->mutex);
	return j;
}

/* Has the QP been attached for another join of the same group, too? */
static bool is_needed(struct ident *id, const union ibv_gid *group)
{
	bool needed = false;

	pthread_mutex_lock(&id->mutex);
	for (const struct join *j = id->joins; j && !needed; j = j->next)
		needed = j->attached && memcmp(&j->group, group, sizeof *group) == 0;
	pthread_mutex_unlock(&id->mutex);
	return needed;
}

struct join_name {
	uint32_t handle, number;
};

static bool about_join(const struct cm_event *e, const void *arg)
{
	const struct join_name *name = arg;

	return e->handle == name->handle && e->join == name->number;
}

static int leave_group(struct ident *id, const struct sockaddr *addr)
{
	struct join_name name = {.handle = id->handle};
	char text[INET6_ADDRSTRLEN];
	union ibv_gid group;
	struct join *j;
	int ret = group_of(addr, &group);

	if (ret)
		return ret;
	j = take_out(id, &group);
	if (!j)
		return log_refused(-EADDRNOTAVAIL,
			"rdma_leave_multicast refused: the id has not joined %s",
			gid_text(group.raw, text));
	name.number = j->number;
	if (id->sync && id->id.event) {
		rdma_ack_cm_event(id->id.event);
		id->id.event = NULL;
	}
	channel_sift(to_channel(id->id.channel), NULL, about_join, &name);
	pthread_mutex_lock(&id->mutex);
	while (j->n_acked < j->n_events && !id->inherited)
		pthread_cond_wait(&id->acked, &id->mutex);
	pthread_mutex_unlock(&id->mutex);
	if (j->attached && id->id.qp && !is_needed(id, &group))
		(void)ibv_detach_mcast(id->id.qp, &group, 0); /* the program may have done so */
	free(j);
	return 0;
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return result(leave_group(to_ident(id), addr));
}

void joins_free(struct ident *id)
{
	while (id->joins) {
		struct join *j = id->joins;

		id->joins = j->next;
		free(j);
	}
}

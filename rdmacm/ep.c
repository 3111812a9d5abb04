// SPDX-License-Identifier: BSD-3-Clause
/* Endpoints: address lists, and an id with its QP in one call. */
#include "rdmacm/rdmacm.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { RESOLVE_TIMEOUT_MS = 2000 };

/* ---- rdma_getaddrinfo ---- */

static const struct rdma_addrinfo no_hints = {.ai_port_space = RDMA_PS_TCP};

static void free_one(struct rdma_addrinfo *rai)
{
	free(rai->ai_src_addr);
	free(rai->ai_dst_addr);
	free(rai->ai_src_canonname);
	free(rai->ai_dst_canonname);
	free(rai->ai_route);
	free(rai->ai_connect);
	free(rai);
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free_one(res);
		res = next;
	}
}

static int qp_type_of(int ps)
{
	return ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

static int port_space_of(int qp_type)
{
	return qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static int copy_addr(
	struct sockaddr **to, socklen_t *to_len, const struct sockaddr *from, socklen_t len)
{
	*to = malloc(len);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

/* An entry without addresses, NULL without memory. */
static struct rdma_addrinfo *new_info(const struct rdma_addrinfo *hints, int family)
{
	struct rdma_addrinfo *rai = calloc(1, sizeof *rai);

	if (!rai)
		return NULL;
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = family;
	rai->ai_port_space =
		hints->ai_port_space ? hints->ai_port_space : port_space_of(hints->ai_qp_type);
	rai->ai_qp_type = hints->ai_qp_type ? hints->ai_qp_type : qp_type_of(rai->ai_port_space);
	return rai;
}

/* One entry of the system's list, as the hints want it. */
static int convert(
	const struct addrinfo *ai, const struct rdma_addrinfo *hints, struct rdma_addrinfo **out)
{
	struct rdma_addrinfo *rai = new_info(hints, ai->ai_family);
	bool passive = hints->ai_flags & RAI_PASSIVE;
	char *name = NULL;
	int ret;

	if (!rai)
		return EAI_MEMORY;
	if (ai->ai_canonname)
		name = strdup(ai->ai_canonname);
	if (passive) {
		ret = copy_addr(&rai->ai_src_addr, &rai->ai_src_len, ai->ai_addr, ai->ai_addrlen);
		rai->ai_src_canonname = name;
	} else {
		ret = copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, ai->ai_addr, ai->ai_addrlen);
		rai->ai_dst_canonname = name;
	}
	if (!ret && !passive && hints->ai_src_len)
		ret = copy_addr(
			&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
	if (ret)
		free_one(rai);
	else
		*out = rai;
	return ret;
}

static struct addrinfo system_hints(const struct rdma_addrinfo *hints)
{
	struct addrinfo ai = {.ai_socktype = SOCK_STREAM};
	bool datagram = hints->ai_port_space == RDMA_PS_UDP || hints->ai_qp_type == IBV_QPT_UD;

	if (datagram)
		ai.ai_socktype = SOCK_DGRAM;
	if (hints->ai_flags & RAI_PASSIVE)
		ai.ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ai.ai_flags |= AI_NUMERICHOST;
	if (hints->ai_flags & RAI_FAMILY)
		ai.ai_family = hints->ai_family;
	return ai;
}

/* Addresses may come ready made in the hints: a destination, a source, or both. */
static int from_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	const struct sockaddr *given = hints->ai_dst_len ? hints->ai_dst_addr : hints->ai_src_addr;
	struct rdma_addrinfo *rai;
	int ret = 0;

	if (!given || !(hints->ai_dst_len || hints->ai_src_len))
		return EAI_NONAME;
	rai = new_info(hints, given->sa_family);
	if (!rai)
		return EAI_MEMORY;
	if (hints->ai_dst_len)
		ret = copy_addr(
			&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len);
	if (!ret && hints->ai_src_len)
		ret = copy_addr(
			&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
	if (ret)
		free_one(rai);
	else
		*res = rai;
	return ret;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **res)
{
	struct rdma_addrinfo **link = res, *last = NULL;
	struct addrinfo ask, *list = NULL;
	int ret;

	if (!hints)
		hints = &no_hints;
	*res = NULL;
	if (!node && !service)
		ret = from_hints(hints, res);
	else {
		ask = system_hints(hints);
		ret = getaddrinfo(node, service, &ask, &list);
		for (struct addrinfo *ai = ret ? NULL : list; ai && !ret; ai = ai->ai_next) {
			ret = convert(ai, hints, &last);
			if (ret)
				break;
			*link = last;
			link = &last->ai_next;
		}
		if (list)
			freeaddrinfo(list);
	}
	if (ret) {
		rdma_freeaddrinfo(*res);
		*res = NULL;
	}
	return ret;
}

/* ---- endpoints ---- */

static int remember(struct ident *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	const struct ibv_qp_init_attr *init)
{
	if (res->ai_connect_len) {
		id->connect = malloc(res->ai_connect_len);
		if (!id->connect)
			return -ENOMEM;
		memcpy(id->connect, res->ai_connect, res->ai_connect_len);
		id->connect_len = res->ai_connect_len;
	}
	if (init && res->ai_flags & RAI_PASSIVE) {
		id->ep_qp_attr = malloc(sizeof *init);
		if (!id->ep_qp_attr)
			return -ENOMEM;
		*id->ep_qp_attr = *init;
		id->ep_qp_attr->qp_type = res->ai_qp_type;
		id->ep_pd = pd;
	}
	return 0;
}

static int prepare(struct rdma_cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *init)
{
	if (res->ai_flags & RAI_PASSIVE)
		return rdma_bind_addr(id, res->ai_src_addr);
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_TIMEOUT_MS))
		return -1;
	if (!(res->ai_flags & RAI_NOROUTE) && rdma_resolve_route(id, RESOLVE_TIMEOUT_MS))
		return -1;
	if (!init)
		return 0;
	init->qp_type = res->ai_qp_type;
	return rdma_create_qp(id, pd, init);
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *init)
{
	struct rdma_cm_id *id;
	int ret = rdma_create_id(NULL, &id, NULL, res->ai_port_space);

	if (ret)
		return ret;
	id->qp_type = res->ai_qp_type;
	ret = result(remember(to_ident(id), res, pd, init));
	if (!ret)
		ret = prepare(id, res, pd, init);
	if (ret) {
		int saved = errno;

		rdma_destroy_ep(id);
		errno = saved;
		return -1;
	}
	if (id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	*out = id;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	struct ident *l = to_ident(listen);
	struct rdma_cm_event *event;

	if (!l->sync)
		return fail(EINVAL);
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	if (event->status || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		int err = event->status ? abs(event->status) : EINVAL;

		rdma_ack_cm_event(event);
		return fail(err);
	}
	if (l->ep_qp_attr) {
		struct ibv_qp_init_attr init = *l->ep_qp_attr;

		if (rdma_create_qp(event->id, l->ep_pd, &init)) {
			struct rdma_cm_id *id = event->id;
			int saved = errno;

			rdma_reject(id, NULL, 0);
			rdma_ack_cm_event(event);
			rdma_destroy_id(id);
			return fail(saved);
		}
	}
	*out = event->id;
	(*out)->event = event;
	return 0;
}

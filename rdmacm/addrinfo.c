// SPDX-License-Identifier: BSD-3-Clause
/* Lists of addresses: looked up, and looked up on behalf of an id. */
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/gid.h"
#include "rdmacm/device.h"
#include "rdmacm/event.h"
#include "rdmacm/newer.h"

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

static int give_source(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
	return copy_addr(
		&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
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
		ret = give_source(rai, hints);
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
		ret = give_source(rai, hints);
	if (ret)
		free_one(rai);
	else
		*res = rai;
	return ret;
}

/*
 * "localhost" without a port is how programs ask for an address of this host to name to others
 * (libfabric).  An adapter has none in 127.0.0.0/8, which sends them to that of its link; ours has
 * one, which would lead others to themselves, and so says that of its link here.  NULL: as given.
 */
static const char *link_of_localhost(
	const char *node, const struct rdma_addrinfo *hints, char text[INET6_ADDRSTRLEN])
{
	struct cm_addr own;
	bool ipv6 = hints->ai_flags & RAI_FAMILY && hints->ai_family == AF_INET6;

	if (!(hints->ai_flags & RAI_PASSIVE) || strcmp(node, "localhost") ||
		device_address(ipv6 ? 6 : 4, false, &own))
		return NULL;
	return gid_text(own.gid, text);
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **res)
{
	struct rdma_addrinfo **link = res, *last = NULL;
	struct addrinfo ask, *list = NULL;
	char text[INET6_ADDRSTRLEN];
	const char *own;
	int ret;

	if (!hints)
		hints = &no_hints;
	*res = NULL;
	own = node && !service ? link_of_localhost(node, hints, text) : NULL;
	node = own ? own : node;
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

/* ---- for an id ---- */

static int copy_text(char **to, const char *from)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : EAI_MEMORY;
}

static int copy_info(struct rdma_addrinfo **out, const struct rdma_addrinfo *from)
{
	struct rdma_addrinfo *rai = new_info(from, from->ai_family);
	int ret = rai ? 0 : EAI_MEMORY;

	if (!ret && from->ai_src_len)
		ret = copy_addr(
			&rai->ai_src_addr, &rai->ai_src_len, from->ai_src_addr, from->ai_src_len);
	if (!ret && from->ai_dst_len)
		ret = copy_addr(
			&rai->ai_dst_addr, &rai->ai_dst_len, from->ai_dst_addr, from->ai_dst_len);
	if (!ret)
		ret = copy_text(&rai->ai_src_canonname, from->ai_src_canonname);
	if (!ret)
		ret = copy_text(&rai->ai_dst_canonname, from->ai_dst_canonname);
	*out = rai;
	return ret;
}

int rdma_resolve_addrinfo(struct rdma_cm_id *rdma_id, const char *node, const char *service,
	const struct rdma_addrinfo *hints)
{
	struct ident *id = to_ident(rdma_id);
	struct rdma_addrinfo ask = hints ? *hints : no_hints, *found;
	int how = ask.ai_flags & (RAI_DNS | RAI_SA), ret;

	if (how == (RAI_DNS | RAI_SA) || (!node && !service))
		return fail(EINVAL);
	if (how == RAI_SA) /* of an InfiniBand subnet; ours is an Ethernet */
		return fail(EOPNOTSUPP);
	ask.ai_flags &= ~RAI_DNS;
	ask.ai_port_space = ask.ai_port_space ? ask.ai_port_space : (int)rdma_id->ps;
	ret = rdma_getaddrinfo(node, service, &ask, &found);
	if (ret) {
		ret = ident_put_event(id, RDMA_CM_EVENT_ADDRINFO_ERROR,
			ret == EAI_SYSTEM ? -errno : -EADDRNOTAVAIL);
		return ret ? fail(ret) : ident_complete(id);
	}
	rdma_freeaddrinfo(id->info);
	id->info = found;
	ret = ident_put_event(id, RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	return ret ? fail(ret) : ident_complete(id);
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	struct rdma_addrinfo **link = info;
	int ret = 0;

	*info = NULL;
	if (!to_ident(id)->info)
		return fail(ENODATA);
	for (const struct rdma_addrinfo *i = to_ident(id)->info; i && !ret; i = i->ai_next) {
		ret = copy_info(link, i);
		if (*link)
			link = &(*link)->ai_next;
	}
	if (!ret)
		return 0;
	rdma_freeaddrinfo(*info);
	*info = NULL;
	return fail(ENOMEM);
}

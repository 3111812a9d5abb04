// SPDX-License-Identifier: BSD-3-Clause
#include "rdmacm/resolve.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/gid.h"
#include "base/log.h"
#include "rdmacm/address.h"
#include "rdmacm/device.h"
#include "rdmacm/event.h"
#include "rdmacm/explain.h"
#include "verbs/for_rdmacm.h"

enum {
	PKEY_DEFAULT = 0xffff,
	HOP_LIMIT = 64,
	SELECT_EXACTLY = 2, /* of a path record's mtu, rate, lifetime */
	RATE_100_GBPS = 16,
	PACKET_LIFETIME = 18,
	FLOW_LABEL = 0xfffff,
};

static bool is_multicast(const struct cm_addr *a)
{
	return a->family == 4 ? (a->gid[12] & 0xf0) == 0xe0 : a->gid[0] == 0xff;
}

static bool has_source(const struct ident *id)
{
	return id->src.family && !addr_is_any(&id->src);
}

/* ---- addresses of this host, and groups ---- */

/* The source of packets to dst: an address of ours is reached from itself. */
static int choose_source(struct ident *id, const struct cm_addr *dst)
{
	struct cm_addr src = id->src;
	int ret;

	if (has_source(id))
		return 0;
	if (is_multicast(dst)) {
		ret = device_address(dst->family, false, &src);
		if (ret)
			ret = device_address(dst->family, true, &src);
		if (ret)
			return ret;
	} else {
		memcpy(src.gid, dst->gid, 16);
		src.family = dst->family;
		src.is_gid = dst->is_gid;
	}
	src.port = id->src.port;
	id->src = src;
	return 0;
}

static int take_source(struct ident *id, const struct sockaddr *sa)
{
	struct cm_addr src;
	int ret;

	if (!sa || id->state != ID_IDLE)
		return 0;
	ret = addr_from_sockaddr(sa, &src);
	if (!ret)
		ret = addr_check_port_space(id, sa);
	return ret ? ret : ident_bind(id, &src);
}

static int resolve_here(struct ident *id, const struct cm_addr *to)
{
	int ret = choose_source(id, to);

	if (!ret && id->state == ID_IDLE) {
		ret = ident_bind_to_any_port(id);
		if (ret)
			return ret;
	}
	if (!ret)
		ret = ident_attach_device(id);
	if (ret)
		return ret;
	id->dst = *to;
	ident_show_addresses(id);
	id->state = ID_ADDR_QUERY;
	return ident_put_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

/* ---- other hosts ---- */

struct cm_resolve_call ident_resolve_call(const struct ident *id)
{
	struct cm_resolve_call call = {
		.handle = id->handle,
		.channel = id->id.channel ? to_channel(id->id.channel)->id : 0,
		.timeout_ms = id->resolve_ms,
		.ifindex = id->scope,
		.dst = id->dst,
	};

	if (has_source(id))
		call.src = id->src;
	return call;
}

/* All addresses of a family. */
static struct cm_addr any_of(uint8_t family)
{
	struct cm_addr a = {.family = family};

	if (family == 4)
		a.gid[10] = a.gid[11] = 0xff;
	return a;
}

static void tell_unreachable(const struct cm_addr *to, const char *why)
{
	char text[INET6_ADDRSTRLEN];

	log_refusal("no way to %s: %s", gid_text(to->gid, text), why);
}

static int resolve_far(struct ident *id, const struct cm_addr *to, int timeout_ms)
{
	struct cm_resolve_call call;
	int ret = 0;

	if (id->state == ID_IDLE) {
		id->src = any_of(to->family);
		ret = ident_bind_to_any_port(id);
	}
	if (ret)
		return ret;
	id->dst = *to;
	id->resolve_ms = timeout_ms;
	id->asks = id->known = true;
	id->state = ID_ADDR_QUERY; /* the answer may come before the call returns */
	call = ident_resolve_call(id);
	ret = weft_cm_call(OP_CM_RESOLVE, &call, sizeof call, NULL);
	if (ret) {
		id->asks = false;
		id->state = ID_BOUND;
		if (ret != -ENOMEM && ret != -EMFILE)
			tell_unreachable(to, "there is no route");
	}
	return ret;
}

bool ident_is_late(const struct ident *id, const struct cm_event *e)
{
	bool answer = e->type == RDMA_CM_EVENT_ADDR_RESOLVED || e->type == RDMA_CM_EVENT_ADDR_ERROR;

	/* weftd's says where to, ours does not */
	return answer && e->dst.family && (id->state != ID_ADDR_QUERY || !id->asks);
}

static const char *why_unresolved(int status)
{
	if (status == -ETIMEDOUT)
		return "the next hop did not answer in time";
	if (status == -ENODEV)
		return "the device has no address that leads there";
	return "nothing can be sent there";
}

void ident_resolved(struct ident *id, const struct cm_event *e)
{
	if (e->type == RDMA_CM_EVENT_ADDR_ERROR) {
		if (e->dst.family)
			tell_unreachable(&e->dst, why_unresolved(e->status));
		if (id->state == ID_ADDR_QUERY)
			id->state = ID_BOUND;
	} else {
		if (id->asks) {
			memcpy(id->src.gid, e->src.gid, sizeof id->src.gid);
			id->src.family = e->src.family;
			id->src.is_gid = id->dst.is_gid;
			(void)ident_attach_device(id);
			ident_show_addresses(id);
		}
		id->state = ID_ADDR_RESOLVED;
	}
	if (e->dst.family)
		id->asks = false;
}

/* ---- the calls ---- */

static void take_scope(struct ident *id, const struct sockaddr *sa)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;

	if (sa && sa->sa_family == AF_INET6 && sin6->sin6_scope_id)
		id->scope = sin6->sin6_scope_id;
}

static int resolve_addr(
	struct ident *id, const struct sockaddr *src, const struct sockaddr *dst, int timeout_ms)
{
	struct cm_addr to;
	int ret = addr_from_sockaddr(dst, &to);

	if (!ret)
		ret = addr_check_port_space(id, dst);
	if (ret)
		return ret;
	take_scope(id, src);
	take_scope(id, dst);
	ret = take_source(id, src);
	if (ret)
		return ret;
	if (id->state != ID_IDLE && id->state != ID_BOUND)
		return out_of_order(id, "rdma_resolve_addr", "is new, or has an address alone");
	if (has_source(id) && id->src.family != to.family)
		return log_refused(-EINVAL,
			"rdma_resolve_addr refused: the source is of IPv%u, the destination of "
			"IPv%u",
			id->src.family, to.family);
	if (addr_is_any(&to)) /* ourselves, as with sockets */
		ret = device_address(to.family, true, &to);
	if (ret)
		return ret;
	if (is_multicast(&to) || device_gid_index(to.gid) >= 0)
		return resolve_here(id, &to);
	if (!weft_cm_has_others()) {
		tell_unreachable(&to, "it is no address of this machine, and WEFT_WIRE is never");
		return -ENETUNREACH;
	}
	return resolve_far(id, &to, timeout_ms);
}

int rdma_resolve_addr(struct rdma_cm_id *rdma_id, struct sockaddr *src_addr,
	struct sockaddr *dst_addr, int timeout_ms)
{
	struct ident *id = to_ident(rdma_id);
	int ret = resolve_addr(id, src_addr, dst_addr, timeout_ms);

	return ret ? fail(ret) : ident_complete(id);
}

/* As other implementations make it, of the ports: so routers spread connections, not packets. */
static uint32_t flow_label_of(const struct ident *id)
{
	return (id->src.port * 31u + id->dst.port) & FLOW_LABEL;
}

static int find_mtu(const struct ident *id, uint8_t *mtu)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	int index = device_gid_index(id->src.gid);

	if (index < 0)
		return no_such_address("rdma_resolve_route", id->src.gid, -EADDRNOTAVAIL);
	attr.grh.sgid_index = index;
	attr.grh.hop_limit = HOP_LIMIT;
	attr.grh.traffic_class = id->tos;
	attr.grh.flow_label = flow_label_of(id);
	memcpy(attr.grh.dgid.raw, id->dst.gid, sizeof attr.grh.dgid.raw);
	return weft_cm_path(&attr, mtu);
}

static int fill_path(struct ident *id)
{
	uint8_t mtu;
	int ret = find_mtu(id, &mtu);

	if (ret)
		return ret;
	id->path = (struct ibv_sa_path_rec){
		.flow_label = htobe32(flow_label_of(id)),
		.hop_limit = HOP_LIMIT,
		.traffic_class = id->tos,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htons(PKEY_DEFAULT),
		.mtu_selector = SELECT_EXACTLY,
		.mtu = mtu,
		.rate_selector = SELECT_EXACTLY,
		.rate = RATE_100_GBPS,
		.packet_life_time_selector = SELECT_EXACTLY,
		.packet_life_time = PACKET_LIFETIME,
	};
	memcpy(id->path.sgid.raw, id->src.gid, 16);
	memcpy(id->path.dgid.raw, id->dst.gid, 16);
	id->id.route.path_rec = &id->path;
	id->id.route.num_paths = 1;
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *rdma_id, int timeout_ms)
{
	struct ident *id = to_ident(rdma_id);
	int ret;

	(void)timeout_ms; /* whether the next hop is there was seen before */
	if (id->state != ID_ADDR_RESOLVED)
		return fail(out_of_order(id, "rdma_resolve_route", "has its address resolved"));
	ret = fill_path(id);
	id->state = ID_ROUTE_QUERY;
	if (ret)
		ret = ident_put_event(id, RDMA_CM_EVENT_ROUTE_ERROR, ret);
	else
		ret = ident_put_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return ret ? fail(ret) : ident_complete(id);
}

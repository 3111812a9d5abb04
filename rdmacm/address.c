// SPDX-License-Identifier: BSD-3-Clause
/* Addresses: how programs write them, and binding ids to them. */
#include "rdmacm/address.h"

#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/ib.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/gid.h"
#include "base/log.h"
#include "fabric/gid_table.h"
#include "rdmacm/call.h"
#include "rdmacm/device.h"
#include "rdmacm/event.h"
#include "rdmacm/explain.h"
#include "rdmacm/ports.h"
#include "rdmacm/table.h"
#include "verbs/for_rdmacm.h"

enum { PKEY_DEFAULT = 0xffff };

/* A GID is an address of one of the two kinds; its port are the last bits of the service id. */
static int from_sockaddr_ib(const struct sockaddr_ib *sib, struct cm_addr *a)
{
	if (sib->sib_pkey && sib->sib_pkey != htons(PKEY_DEFAULT))
		return log_refused(-ENODEV,
			"an address of AF_IB refused: its P_Key is %#x, not %#x",
			ntohs(sib->sib_pkey), PKEY_DEFAULT);
	memcpy(a->gid, &sib->sib_addr, sizeof a->gid);
	a->family = gid_is_ipv4(a->gid) ? 4 : 6;
	a->port = be64toh(sib->sib_sid & sib->sib_sid_mask);
	a->is_gid = 1;
	return 0;
}

int addr_from_sockaddr(const struct sockaddr *sa, struct cm_addr *a)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;

	*a = (struct cm_addr){0};
	if (!sa)
		return log_refused(-EINVAL, "an address is missing");
	switch (sa->sa_family) {
	case AF_INET:
		a->family = 4;
		a->port = ntohs(sin->sin_port);
		gid_from_ipv4(a->gid, &sin->sin_addr);
		return 0;
	case AF_INET6:
		a->family = 6;
		a->port = ntohs(sin6->sin6_port);
		memcpy(a->gid, &sin6->sin6_addr, 16);
		return 0;
	case AF_IB:
		return from_sockaddr_ib((const struct sockaddr_ib *)sa, a);
	default:
		return log_refused(-EAFNOSUPPORT,
			"an address of family %d refused: there are AF_INET, AF_INET6 and AF_IB",
			sa->sa_family);
	}
}

int addr_check_port_space(const struct ident *id, const struct sockaddr *sa)
{
	const struct sockaddr_ib *sib = (const struct sockaddr_ib *)sa;
	uint64_t mask;

	if (!sa || sa->sa_family != AF_IB)
		return 0;
	mask = be64toh(sib->sib_sid_mask) & ~(uint64_t)UINT16_MAX;
	if (!((be64toh(sib->sib_sid) ^ (uint64_t)id->id.ps << 16) & mask))
		return 0;
	return log_refused(-EPROTONOSUPPORT,
		"an address of AF_IB refused: its service id %#llx is not of the id's port space "
		"%#x",
		(unsigned long long)be64toh(sib->sib_sid), id->id.ps);
}

static void to_sockaddr_ib(const struct cm_addr *a, uint16_t ps, struct sockaddr_ib *sib)
{
	sib->sib_family = AF_IB;
	sib->sib_pkey = htons(PKEY_DEFAULT);
	memcpy(&sib->sib_addr, a->gid, sizeof a->gid);
	sib->sib_sid = htobe64((uint64_t)ps << 16 | a->port);
	sib->sib_sid_mask = UINT64_MAX;
}

void addr_to_sockaddr(const struct cm_addr *a, uint16_t ps, struct sockaddr_storage *ss)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof *ss);
	if (a->is_gid) {
		to_sockaddr_ib(a, ps, (struct sockaddr_ib *)ss);
	} else if (a->family == 4) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(a->port);
		memcpy(&sin->sin_addr, a->gid + 12, 4);
	} else if (a->family == 6) {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(a->port);
		memcpy(&sin6->sin6_addr, a->gid, 16);
	}
}

bool addr_is_any(const struct cm_addr *a)
{
	static const uint8_t zero[16];

	return memcmp(a->gid + (a->family == 4 ? 12 : 0), zero, a->family == 4 ? 4 : 16) == 0;
}

static bool is_link_local(const struct cm_addr *a)
{
	return a->family == 6 && gid_is_link_local(a->gid);
}

static void show(const struct ident *id, const struct cm_addr *a, struct sockaddr_storage *ss)
{
	if (!a->family)
		return;
	addr_to_sockaddr(a, id->id.ps, ss);
	if (is_link_local(a) && !a->is_gid)
		((struct sockaddr_in6 *)ss)->sin6_scope_id = id->scope;
}

void ident_show_addresses(struct ident *id)
{
	struct rdma_addr *addr = &id->id.route.addr;

	show(id, &id->src, &addr->src_storage);
	show(id, &id->dst, &addr->dst_storage);
	if (!id->id.verbs)
		return;
	memcpy(addr->addr.ibaddr.sgid.raw, id->src.gid, 16);
	memcpy(addr->addr.ibaddr.dgid.raw, id->dst.gid, 16);
	addr->addr.ibaddr.pkey = htons(PKEY_DEFAULT);
}

int ident_attach_device(struct ident *id)
{
	const struct device *dev;
	int ret = device_get(&dev);

	if (ret)
		return ret;
	id->id.verbs = dev->verbs;
	id->id.port_num = 1;
	if (!id->id.pd)
		id->id.pd = dev->pd;
	return 0;
}

static unsigned first_free_for_all(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	unsigned start = 1024;

	if (f) {
		if (fscanf(f, "%u", &start) != 1)
			start = 1024;
		fclose(f);
	}
	return start;
}

static bool may_bind_low(void)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	return syscall(SYS_capget, &hdr, data) == 0 &&
	       data[0].effective & 1u << CAP_NET_BIND_SERVICE;
}

static void become_bound(struct ident *id, const struct cm_addr *addr, uint16_t port)
{
	id->src = *addr;
	id->src.port = port;
	id->has_port = true;
	id->state = ID_BOUND;
	ident_show_addresses(id);
}

/* Of a port below those that all may have. */
static int check_low_port(uint16_t port)
{
	unsigned start;

	if (!port || port >= 1024)
		return 0;
	start = first_free_for_all();
	if (port >= start || may_bind_low())
		return 0;
	return log_refused(-EACCES,
		"rdma_bind_addr refused: port %u is below %u, for which the process needs "
		"CAP_NET_BIND_SERVICE",
		port, start);
}

static int explain_bind(int err, uint16_t port)
{
	if (err == -EADDRINUSE)
		log_refusal("rdma_bind_addr refused: another id of this fabric has port %u in this "
			    "port space",
			port);
	return err;
}

int ident_bind(struct ident *id, const struct cm_addr *addr)
{
	bool any = addr_is_any(addr);
	const struct device *dev;
	struct cm_bind_call call;
	struct proto_cm_bound reply;
	int ret = 0;

	if (id->state != ID_IDLE)
		return out_of_order(id, "rdma_bind_addr", "is new");
	if (!any && device_gid_index(addr->gid) < 0)
		return no_such_address("rdma_bind_addr", addr->gid, -EADDRNOTAVAIL);
	if (!any)
		ret = device_get(&dev); /* what can fail, before the port is ours */
	if (!ret)
		ret = check_low_port(addr->port);
	if (ret)
		return ret;
	call = (struct cm_bind_call){
		.handle = id->handle,
		.channel = channel_of(id),
		.flags = id->flags,
		.ps = id->id.ps,
		.src = *addr,
	};
	if (addr->port && port_claim(addr->port))
		call.flags |= CM_F_LENT;
	id->known = true; /* even if the answer is late */
	ret = explain_bind(weft_cm_call(OP_CM_BIND, &call, sizeof call, &reply), addr->port);
	if (!ret && !any)
		ret = ident_attach_device(id);
	if (ret)
		return ret;
	become_bound(id, addr, reply.port);
	return 0;
}

int ident_bind_to_any_port(struct ident *id)
{
	uint16_t port;
	int ret = port_borrow(&port, &id->loan);

	if (!ret)
		become_bound(id, &id->src, port);
	return ret;
}

int rdma_bind_addr(struct rdma_cm_id *rdma_id, struct sockaddr *sa)
{
	struct cm_addr addr;
	int ret = addr_from_sockaddr(sa, &addr);

	if (!ret)
		ret = addr_check_port_space(to_ident(rdma_id), sa);
	if (!ret)
		ret = ident_bind(to_ident(rdma_id), &addr);
	return result(ret);
}

static uint16_t port_of(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return ((const struct sockaddr_in *)sa)->sin_port;
	if (sa->sa_family == AF_IB)
		return htons(be64toh(((const struct sockaddr_ib *)sa)->sib_sid));
	return sa->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)sa)->sin6_port : 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "ti/dev/endpoint.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum { RESOLVE_MS = 2000 };

/* ---- addresses ---- */

static void make_ipv4(struct endpoint *ep, const ti_inet_addr_t *addr, ti_port_t port, bool host)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&ep->addr;

	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	sin->sin_addr.s_addr = host ? htonl(addr->ipv4_addr) : addr->ipv4_addr;
	ep->any = sin->sin_addr.s_addr == htonl(INADDR_ANY);
}

static void make_ipv6(struct endpoint *ep, const ti_inet_addr_t *addr, ti_port_t port)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&ep->addr;

	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(port);
	sin6->sin6_addr = addr->inet_u.in6;
	ep->any = IN6_IS_ADDR_UNSPECIFIED(&sin6->sin6_addr);
}

void endpoint_show(const struct sockaddr *sa, ti_inet_addr_t *addr, ti_port_t *port)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;

	memset(addr, 0, sizeof *addr);
	*port = 0;
	if (sa->sa_family == AF_INET) {
		addr->IP_addr_type = TI_ADDR_IPV4;
		addr->inet_u.in4 = sin->sin_addr;
		*port = ntohs(sin->sin_port);
	} else if (sa->sa_family == AF_INET6) {
		addr->IP_addr_type = TI_ADDR_IPV6;
		addr->inet_u.in6 = sin6->sin6_addr;
		*port = ntohs(sin6->sin6_port);
	}
}

/* ---- what the adapters make of it ---- */

/* The address without the port, which connect() and listen() take. */
static struct sockaddr *portless(const struct endpoint *ep, struct sockaddr_storage *ss)
{
	*ss = ep->addr;
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)ss)->sin_port = 0;
	else
		((struct sockaddr_in6 *)ss)->sin6_port = 0;
	return (struct sockaddr *)ss;
}

static bool bind_local(struct endpoint *ep, struct rdma_cm_id *id)
{
	struct sockaddr_storage ss;

	if (rdma_bind_addr(id, portless(ep, &ss)))
		return false;
	ep->local = true;
	ep->verbs = id->verbs;
	return true;
}

static bool reach_remote(struct endpoint *ep, struct rdma_cm_id *id)
{
	struct sockaddr_storage ss;

	return !rdma_resolve_addr(id, NULL, portless(ep, &ss), RESOLVE_MS);
}

/* May block, as the document says. */
static bool map_address(struct endpoint *ep)
{
	bool (*const ways[])(struct endpoint *, struct rdma_cm_id *) = {bind_local, reach_remote};
	struct rdma_cm_id *id;
	bool ok = false;

	(void)system_block();
	for (int i = 0; i < 2 && !ok && !rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP); i++) {
		ok = ways[i](ep, id);
		rdma_destroy_id(id);
	}
	system_unblock();
	return ok;
}

/* ---- the operations ---- */

static void destroy(struct object *o)
{
	struct endpoint *ep = (struct endpoint *)o;

	member_end(&ep->m);
	free(ep);
}

static ti_status_t create(
	struct service *ti, const ti_inet_addr_t *addr, ti_port_t port, ti_endpoint_handle_t *ph_ep)
{
	struct endpoint *ep = calloc(1, sizeof *ep);
	ti_status_t st = TI_ERROR;

	if (!ep)
		return TI_INSUFFICIENT_MEMORY;
	if (addr->IP_addr_type == TI_ADDR_IPV4)
		make_ipv4(ep, addr, port, service_has(ti, TI_HOST_ORDER));
	else
		make_ipv6(ep, addr, port);
	if (map_address(ep))
		st = service_join(ti, &ep->m, HANDLE_ENDPOINT, destroy);
	if (st) {
		free(ep);
	} else {
		*ph_ep = ep->m.obj.handle;
		object_put(&ep->m.obj);
	}
	return st;
}

ti_status_t op_create_endpoint(
	ti_handle_t h_ti, ti_inet_addr_t *p_addr, ti_port_t port, ti_endpoint_handle_t *ph_ep)
{
	struct service *ti;
	ti_status_t st;

	if (ph_ep)
		*ph_ep = NULL;
	ti = service_get(h_ti);
	if (!ti)
		return TI_INVALID_HANDLE;
	if (!ph_ep || !p_addr || (unsigned)p_addr->IP_addr_type > TI_ADDR_IPV6)
		st = TI_INVALID_PARAMETER;
	else
		st = create(ti, p_addr, port, ph_ep);
	service_put(ti);
	return st;
}

ti_status_t op_destroy_endpoint(ti_endpoint_handle_t h_ep)
{
	struct endpoint *ep = object_get(h_ep, HANDLE_ENDPOINT);

	if (!ep)
		return TI_INVALID_PARAMETER;
	if (!service_leave(&ep->m)) {
		object_put(&ep->m.obj);
		return TI_INVALID_PARAMETER;
	}
	object_put(&ep->m.obj);
	object_put(&ep->m.obj);
	return TI_SUCCESS;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/core/service.h"

#include <infiniband/verbs.h>
#include <sys/socket.h>

struct endpoint {
	struct member m;
	struct sockaddr_storage addr; /* with the port */
	bool local, any;              /* an address of this machine; all of them */
	struct ibv_context *verbs;    /* of a local address, but any */
};

/* The endpoint with a reference, if it is one of ti's; else NULL. */
static inline struct endpoint *endpoint_get(struct service *ti, ti_endpoint_handle_t h_ep)
{
	return member_get(ti, h_ep, HANDLE_ENDPOINT);
}

/* How the document has an address: in network order; its port. */
void endpoint_show(const struct sockaddr *sa, ti_inet_addr_t *addr, ti_port_t *port);

ti_status_t op_create_endpoint(
	ti_handle_t h_ti, ti_inet_addr_t *p_addr, ti_port_t port, ti_endpoint_handle_t *ph_ep);
ti_status_t op_destroy_endpoint(ti_endpoint_handle_t h_ep);

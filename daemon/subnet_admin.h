/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology of a fabric as its users ask for it: OP_NODE, OP_TOPO, OP_TOPO_DO; and what its
 * console asks of weftd: clients, log, end. */
#pragma once

#include <jansson.h>

#include "daemon/session.h"
#include "daemon/subnet_service.h"

/* Each as request_handle(); -EOPNOTSUPP: the fabric has no topology. */
int subnet_admin_node(struct server *s, struct session *c, struct proto_in *in, struct reply *r);
int subnet_admin_topo(struct server *s, struct session *c, struct proto_in *in, struct reply *r);
int subnet_admin_do(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/* For weft status: nodes, links, the built-in subnet manager; and drops.  The caller's. */
json_t *subnet_admin_status(const struct subnet_service *net);
json_t *subnet_admin_drops(const struct subnet_service *net);

/*
 * The console of net carries such commands out from now on; in a netlist only those that need
 * neither clients nor a fabric that has begun.
 */
void subnet_admin_hooks(struct subnet_service *net, bool in_netlist);

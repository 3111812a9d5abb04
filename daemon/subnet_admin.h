/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology of a fabric as its users ask for it: OP_NODE, OP_TOPO, OP_TOPO_DO. */
#pragma once

#include "daemon/session.h"

/* Each as request_handle(); -EOPNOTSUPP: the fabric has no topology. */
int subnet_admin_node(struct server *s, struct session *c, struct proto_in *in, struct reply *r);
int subnet_admin_topo(struct server *s, struct session *c, struct proto_in *in, struct reply *r);
int subnet_admin_do(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MAD layer of weft0's port, in weftd: every address of this machine is the port itself; other
 * machines are reached by packets.
 */
#pragma once

#include <jansson.h>

#include "daemon/qp1.h"
#include "daemon/server.h"
#include "mad/mad.h"

struct mad_service {
	struct mad_layer layer;
	struct mad_port port;
	struct qp1 qp1;
	const struct server *server;
};

void mad_service_start(struct mad_service *m, struct server *s);

/* The clock of MADs and of the communication manager: ns.  arg is of no use. */
uint64_t mad_service_now(void *arg);

/* How many MADs were dropped for each reason: an object that the caller owns. */
json_t *mad_service_drops(const struct mad_service *m);

/* Is it a GID of the port's table? */
bool mad_service_is_local(const struct mad_service *m, const uint8_t gid[MAD_GID]);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections in weftd: the MAD port, the communication manager on it, and the way of its events
 * to the event channels of the processes (daemon/channels.h).
 */
#pragma once

#include <jansson.h>

#include "daemon/session.h"
#include "mad/mad.h"

int connections_start(struct server *s);

/* Carries out OP_CM_*; as request_handle(). */
int connections_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/* Its ids, ports and channels are free; its peers are told. */
void connections_process_gone(struct server *s, uint32_t attach_id);

/* After something was sent: delivers what is under way, within bounds, and sees to the rest later.
 */
void connections_run(struct server *s);

/* The MAD port of weft0. */
struct mad_port *connections_mad_port(const struct server *s);

/* weftd leaves. */
void connections_end(struct server *s);

/* Counts, for weft status; the caller owns it. */
json_t *connections_status(const struct server *s);

/* MADs that were dropped, by reason; the caller owns it. */
json_t *connections_mad_drops(const struct server *s);

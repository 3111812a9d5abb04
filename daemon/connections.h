/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections in weftd: the MAD port, the communication manager on it, and the way of its events
 * to the event channels of the processes (daemon/channels.h).
 */
#pragma once

#include <jansson.h>

#include "daemon/session.h"

/* Starts; sets s->mad_port and s->deliver.  -errno. */
int connections_start(struct server *s);

/* Carries out OP_CM_*; as request_handle(). */
int connections_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/* Its ids, ports and channels are free; its peers are told. */
void connections_process_gone(struct server *s, uint32_t attach_id);

/* weftd leaves. */
void connections_end(struct server *s);

/* Counts, for weft status; the caller owns it. */
json_t *connections_status(const struct server *s);

/* MADs between machines; the caller owns it. */
json_t *connections_qp1(const struct server *s);

/* MADs that were dropped, by reason; the caller owns it. */
json_t *connections_mad_drops(const struct server *s);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections in weftd: the MAD port, the communication manager on it, and the way of its events
 * to the event channels of the processes.
 *
 * weftd has no fd of a channel.  A channel is a datagram socket of its process with an address of
 * its own, which weftd sends its events to; a filter in that socket lets nothing pass that does
 * not begin with the cookie which the process told weftd.  At most CM_WINDOW events lie in a
 * socket unread, the others wait here.
 */
#pragma once

#include <jansson.h>

#include "daemon/session.h"

int connections_start(struct server *s);

/* Carries out OP_CM_*; as request_handle(). */
int connections_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/* Its ids, ports and channels are free; its peers are told. */
void connections_process_gone(struct server *s, uint32_t attach_id);

/* Counts, for weft status; the caller owns it. */
json_t *connections_status(const struct server *s);

/* SPDX-License-Identifier: BSD-3-Clause */
/* umad files in weftd: the calls about them. */
#pragma once

#include <jansson.h>

#include "daemon/session.h"

/* -ENOMEM. */
int umads_start(struct server *s);

/* weftd leaves: their programs see that the device is gone. */
void umads_end(struct server *s);

/* The node whose port the call names, made if need be; NULL: no such device or port. */
struct node *umads_find_node(struct server *s, const struct proto_umad_open *call);

/* Carries out OP_UMAD_*; as request_handle(). */
int umads_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/* A connection has ended, and with it the lanes that it asked for. */
void umads_session_gone(struct server *s, struct session *c);

/* After MADs were delivered: ends files that are broken.  When it wants to be called again: 0
 * never, or CLOCK_MONOTONIC ns. */
uint64_t umads_run(struct server *s);

/* Counts, for weft status; the caller owns it. */
json_t *umads_status(const struct server *s);

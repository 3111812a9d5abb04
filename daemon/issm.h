/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * issm files: who has one open is the port's subnet manager, as its IsSM bit says; one at a time,
 * the others wait in the order in which they came.  Close, or death, gives it to the next.
 */
#pragma once

#include "daemon/session.h"

/*
 * Carries out OP_ISSM_OPEN; as request_handle().  -ENODEV: no such device or port; -EAGAIN: another
 * one has it, and the call has no PROTO_WAIT.
 */
int issm_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/* How many issm files are open, those that wait included. */
uint32_t issm_count(const struct server *s);

/* weftd leaves: they are closed. */
void issm_end(struct server *s);

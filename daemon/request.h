/* SPDX-License-Identifier: BSD-3-Clause */
/* What weftd does for each op of rdv/proto.h. */
#pragma once

#include "daemon/session.h"

/*
 * Carries out one request.  Returns the reply's status, 0 or a negative errno; or 1 if the
 * message is none that a sane client sends: it was counted and the connection must be closed.
 */
int request_handle(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder of a flow: what roce/proto/responder.h asks of hca/exec/respond.h.  A request that
 * finds no receive is kept for a moment, as one may be posted just now; what comes behind it, too.
 * The thread's exec slot is free: ask_leave().  All under the engine's lock.
 */
#pragma once

#include "roce/flow.h"

/* The functions for rc_resp_start(). */
extern const struct rc_resp_ops serve_ops;

/* A request packet: `bytes` is the datagram of that length, of which p was read. */
void serve_packet(struct flow *f, struct exec *x, const struct roce_packet *p, const uint8_t *bytes,
	size_t len, uint64_t now);

/* Tries again what is kept, if a receive came, or its time. */
void serve_kept(struct flow *f, struct exec *x, uint64_t now);

/* Sends responses, up to `bytes`, and what answer is due at once; `ack`: also an owed ACK.
 * True: there is more to send. */
bool serve_answer(struct flow *f, struct exec *x, uint64_t bytes, bool ack);

/* No more requests: what was begun or kept is given up. */
void serve_stop(struct flow *f, struct exec *x);

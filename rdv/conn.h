/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection to weftd: connect, authenticate, call.  No locking: the caller serialises,
 * except that conn_post() may run beside conn_call() on the same connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/own_fd.h"
#include "rdv/paths.h"
#include "rdv/proto.h"

struct conn {
	struct own_fd sock;
	int32_t server_pid; /* weftd's, 0 if it has none in our pid namespace */
	uint32_t cookie;
};

#define CONN_NONE ((struct conn){.sock = {.fd = -1}})

/*
 * Connects to the weftd that listens at p.  Blocks up to 5 s if it does not accept.  -ENOTCONN:
 * none listens (not logged); -EACCES: it is another user's; -ETIMEDOUT; -EMFILE and the like
 * (logged once): we are short ourselves.
 */
int conn_open(struct conn *c, const struct rdv_paths *p);
void conn_close(struct conn *c);

/*
 * Sends *out as a call and waits up to 5 s for its reply in *in.  Returns the reply's status or
 * -EPIPE the connection broke (conn_close() it), -ETIMEDOUT (logged), -EPROTO another version, or
 * a reply that is none of this op (logged), -EMFILE.  On 0 payload and fds are those of the op;
 * the caller takes the fds it wants out of *in and calls proto_close().
 */
int conn_call(struct conn *c, struct proto_out *out, struct proto_in *in);

/* Sends a one-way message, never blocks.  -EPIPE, -EAGAIN. */
int conn_post(const struct conn *c, struct proto_out *out);

/* Waits until weftd has closed the connection.  -ETIMEDOUT after 5 s, logged. */
int conn_wait_end(struct conn *c);

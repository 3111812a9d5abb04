/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process's second connection to weftd: calls about umad files.  It need not be attached, and
 * nothing is published again: the files of a weftd die with it.  When the connection ends, so do
 * the lanes that were asked for by it (rdv/proto.h).  Thread safe; one call at a time.
 */
#pragma once

#include "rdv/proto.h"

/*
 * Makes a call, and waits up to 5 s for its reply in *in, whose fds the caller takes or closes.
 * start: connects first, where there is no connection, and starts weftd if need be; else only
 * connects to one that runs.  Where weftd has closed the connection it tries another.  -EPIPE: the
 * connection was lost, or there is none and weftd does not run; what conn_open(), conn_call() and
 * spawn_or_connect() answer, and weftd.
 */
int umad_line_call(struct proto_out *out, struct proto_in *in, bool start);

/* Around a fork(2), in this order: nobody calls any more; they may again; the child has no
 * connection. */
void umad_line_before_fork(void);
void umad_line_after_fork(void);
void umad_line_in_child(void);

/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting weftd from within any process, unseen by it. */
#pragma once

#include <stdbool.h>

#include "rdv/conn.h"

/*
 * What weftd writes to the fd of --ready-fd: "ok", or an errno in decimal, a space and why it
 * cannot start; these characters are not part of the reason.
 */
#define READY_ERROR_CHARS "0123456789 "

/*
 * Connects to weftd; if none listens, starts one: its executable is $WEFT_DAEMON, else lies
 * beside this library, else where it was installed.  Of many processes that try at once one
 * starts it.  stay: the new weftd does not leave when idle.  Blocks up to 5 s.  Errors as
 * conn_open(), and -ENOENT no executable found; all are logged.
 */
int spawn_or_connect(struct conn *c, const struct rdv_paths *p, bool stay);

/* SPDX-License-Identifier: BSD-3-Clause */
/* The request callback, and requests that come to nothing. */
#pragma once

#include "ti/xfer/connection.h"

/*
 * Calls request_cb on the system thread, once in a connection's life.  Under lock.  With another
 * status than TI_SUCCESS nothing is left to do for the program: the handle is closed before.
 */
void conn_tell(struct conn *c);

/* It will not come about: tells the program, unless it was told already.  Takes lock. */
void conn_fail(struct conn *c, ti_status_t status);

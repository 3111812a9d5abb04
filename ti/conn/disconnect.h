/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections end. */
#pragma once

#include "ti/xfer/connection.h"

/* Closes the handle and, on the system thread, the connection; cb is told then.  False: it was
 * closed already. */
bool conn_close(struct conn *c, ti_context_cb_t cb, void *context);

/* The same of one whose handle the caller has closed. */
void conn_end(struct conn *c);

ti_status_t op_disconnect(ti_conn_handle_t h_conn, ti_context_cb_t pfn_cb, void *p_context);

/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that do not work any more: all that was posted comes back. */
#pragma once

#include "ti/xfer/connection.h"

/*
 * A live connection does not work any more: everything comes back, and pfn_err_cb is told.  From
 * any thread, with any locks but conn's own.
 */
void conn_break(struct conn *c, ti_status_t why);

/*
 * The same as its service ends, which service_ends() tells already: nothing more leaves, an
 * accept() that waits for its peer is canceled, and pfn_err_cb is not told.  Waits for c's lock
 * alone.
 */
void conn_halt(struct conn *c);

/* The queue pair goes to ERR, if there is one. */
void conn_to_error(struct conn *c);

/*
 * The same, with an event behind the last completion that the completion thread sees.  False: the
 * queue pair is not that far.
 */
bool conn_flush(struct conn *c);

/* Lets the system thread run c->finish_job, once. */
void conn_finish(struct conn *c);

/* One that is being closed, or nobody was ever told of: ends it if nothing is under way any more.
 */
void conn_try_finish(struct conn *c);

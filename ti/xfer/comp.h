/* SPDX-License-Identifier: BSD-3-Clause */
/* The completion threads, one for each device: callbacks of transfers run there. */
#pragma once

#include "ti/xfer/connection.h"

/*
 * The channel for the CQs of connections over that device; starts its thread.  NULL: it cannot, or
 * the program has closed the channel's fd.
 */
struct ibv_comp_channel *comp_channel(struct ibv_context *verbs);

/* Calls the callbacks that wait for what completed so far, as the completion thread would. */
void comp_deliver(struct conn *c);

/* Does the thread hear of c's completions?  False: the program has closed the channel's fd. */
bool comp_hears(const struct conn *c);

/*
 * Brings back all that is posted before it returns, and calls the callbacks in this thread; c is
 * mute from then on.  Waits for a callback of c's that the completion thread is in.  For who closes
 * c, or for accept(): nothing more may be posted.
 */
void comp_flush(struct conn *c);

/* After a fork: there are no threads. */
void comp_forked(void);

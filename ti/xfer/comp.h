/* SPDX-License-Identifier: BSD-3-Clause */
/* The completion threads, one for each device: callbacks of transfers run there. */
#pragma once

#include "ti/xfer/connection.h"

/* The channel for the CQs of connections over that device; starts its thread.  NULL: it cannot. */
struct ibv_comp_channel *comp_channel(struct ibv_context *verbs);

/* Calls the callbacks that wait for what completed so far, as the completion thread would. */
void comp_deliver(struct conn *c);

/* After a fork: there are no threads. */
void comp_forked(void);

/* SPDX-License-Identifier: BSD-3-Clause */
/* What rdma_cm tells, and what becomes of it. */
#pragma once

#include "ti/xfer/connection.h"

/*
 * What an event does to connections.  NULL, or a connection with a reference for
 * cm_try_again(), after the event is acknowledged: rdma_cm gave up, the program has not.
 */
struct conn *cm_take_event(const struct rdma_cm_event *event);
void cm_try_again(struct conn *c);

/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's queue pair and the CQ under it. */
#pragma once

#include "ti/xfer/connection.h"

/*
 * Replaces the zeros of attr by defaults and checks the rest against the device.
 * TI_INVALID_PARAMETER.
 */
ti_status_t qp_settle(struct conn *c);

/* Makes both; what was made stays with c also on failure. */
ti_status_t qp_make(struct conn *c);

/* Transitions as the id has them. */
ti_status_t qp_to_init(struct conn *c);
ti_status_t qp_to_ready(struct conn *c);

/* Destroys both; waits for callbacks of the connection that run. */
void qp_end(struct conn *c);

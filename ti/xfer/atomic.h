/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics.  Those on 8 bytes are the adapter's; those on 4 are compare-and-swaps of the aligned 8
 * bytes around them, again until one succeeds.
 */
#pragma once

#include "ti/xfer/connection.h"

/* Fills the request for an element prepared by op_atomic_op(). */
void atomic_fill(struct conn *c, struct element *el, struct ibv_send_wr *wr);

/* After a request for 4 bytes: true if one more is on its way.  Under the queues' locks. */
bool atomic32_step(struct conn *c, struct element *el);

/* After one that the adapter refused. */
void atomic32_end(struct conn *c, struct element *el);

/* What the connection kept for the next ones. */
void atomics_free(struct conn *c);

ti_status_t op_atomic_op(
	ti_conn_handle_t h_conn, ti_atomic_op_t operation, ti_data_element_t *p_data);

/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/xfer/connection.h"

/*
 * Posts the receives of accept(), before the connection is live.  *taken: they are the library's,
 * also if the adapter refused some.
 */
ti_status_t msg_post_first(struct conn *c, ti_data_element_t *list, bool *taken);

ti_status_t op_msg_send(ti_conn_handle_t h_conn, ti_data_element_t *p_delist);
ti_status_t op_msg_recv(ti_conn_handle_t h_conn, ti_data_element_t *p_delist);

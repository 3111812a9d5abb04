/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/conn.h"

/* Posts the receives of accept(), before the connection is live; all or none. */
ti_status_t msg_post_first(struct conn *c, ti_data_element_t *list);

ti_status_t op_msg_send(ti_conn_handle_t h_conn, ti_data_element_t *p_delist);
ti_status_t op_msg_recv(ti_conn_handle_t h_conn, ti_data_element_t *p_delist);

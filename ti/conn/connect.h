/* SPDX-License-Identifier: BSD-3-Clause */
/* connect() and listen(). */
#pragma once

#include "ti/xfer/connection.h"

/* Begins to resolve dst, with an id of its own.  Under lock. */
ti_status_t conn_resolve(struct conn *c);

ti_status_t op_connect(ti_handle_t h_ti, ti_conn_attr_t *p_conn_attr, ti_conn_info_t *p_conn_info,
	ti_conn_request_t *p_conn_req, ti_conn_handle_t *ph_conn);
ti_status_t op_listen(ti_handle_t h_ti, ti_conn_attr_t *p_conn_attr, ti_conn_info_t *p_conn_info,
	ti_conn_request_t *p_conn_req, ti_conn_handle_t *ph_conn);

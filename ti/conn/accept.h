/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/core/ti.h"

ti_status_t op_accept(ti_conn_request_t *p_conn_req, uint32_t max_rdma_size, ti_comp_info_t *p_comp,
	ti_data_element_t *p_recv_mlist);
ti_status_t op_reject(ti_conn_request_t *p_conn_req);

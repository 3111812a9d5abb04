/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/core/ti.h"

struct pool;

/* Its handle is closed: who waits in a blocking get hears of it. */
void pool_halt(struct pool *pool);

ti_status_t op_res_pool_get(ti_res_pool_handle_t h_pool, uint32_t element_count,
	boolean_t partial_allocation_OK, ti_res_pool_cb_t res_cb, void *p_context1,
	void *p_context2, ti_pool_response_t *p_res_pool_resp);
ti_status_t op_res_pool_put(ti_res_pool_handle_t h_pool, ti_data_element_t *p_delist);

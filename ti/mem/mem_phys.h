/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/core/ti.h"

ti_status_t op_reg_phys_mem(ti_handle_t h_ti, ti_pd_handle_t h_pd, uint64_t *p_phys_page_addr_array,
	uint32_t num_pages, ti_access_t access_rights, ti_rdma_desc_t *p_rdma_desc,
	ti_mem_handle_t *ph_pmem);

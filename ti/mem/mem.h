/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/dev/pd.h"

struct mem {
	struct member m;
	struct pd *pd;
	struct ibv_mr *mr;
	void *view; /* pages put side by side; NULL: they were */
	size_t view_len;
};

/* The IBV_ACCESS_* of rights, -1: there are no such. */
int mem_access(ti_access_t rights);

/* Makes mr a region with a handle; on failure mr and view are left to the caller. */
ti_status_t mem_add(struct service *ti, struct pd *pd, const struct mem *what, ti_mem_handle_t *ph);

ti_status_t op_reg_virt_mem(ti_handle_t h_ti, ti_pd_handle_t h_pd, void *p_vaddr,
	uint32_t byte_count, ti_access_t access_rights, ti_rdma_desc_t *p_rdma_desc,
	ti_mem_handle_t *ph_vmem);
ti_status_t op_dereg_mem(ti_mem_handle_t h_mem);

// SPDX-License-Identifier: BSD-3-Clause
/* Registered memory. */
#include "ti/mem/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ti/core/status.h"
#include "ti/core/trace.h"

int mem_access(ti_access_t rights)
{
	switch (rights) {
	case TI_MEM_READ:
		return IBV_ACCESS_REMOTE_READ;
	case TI_MEM_WRITE:
		return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	case TI_MEM_READ_WRITE:
		return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return -1;
	}
}

static void destroy(struct object *o)
{
	struct mem *mem = (struct mem *)o;

	(void)ibv_dereg_mr(mem->mr);
	if (mem->view)
		munmap(mem->view, mem->view_len);
	pd_unuse(mem->pd);
	member_end(&mem->m);
	free(mem);
}

ti_status_t mem_add(struct service *ti, struct pd *pd, const struct mem *what, ti_mem_handle_t *ph)
{
	struct mem *mem = malloc(sizeof *mem);
	ti_status_t st;

	if (!mem)
		return TI_INSUFFICIENT_MEMORY;
	*mem = *what;
	mem->pd = pd;
	if (!pd_use(pd)) {
		free(mem);
		return TI_INVALID_HANDLE;
	}
	st = service_join(ti, &mem->m, HANDLE_MEM, destroy);
	if (st) {
		pd_unuse(pd);
		free(mem);
	} else {
		*ph = mem->m.obj.handle;
		object_put(&mem->m.obj);
	}
	return st;
}

static ti_status_t reg(struct service *ti, struct pd *pd, void *addr, uint32_t len, int access,
	ti_rdma_desc_t *desc, ti_mem_handle_t *ph)
{
	struct mem what = {.mr = ibv_reg_mr(pd->ibpd, addr, len, access)};
	ti_region_key_t rkey;
	ti_status_t st;

	if (!what.mr)
		return status_of_errno(errno);
	rkey = what.mr->rkey;
	st = mem_add(ti, pd, &what, ph);
	if (st) {
		(void)ibv_dereg_mr(what.mr);
		return st;
	}
	desc->vaddr = (uintptr_t)addr;
	desc->rkey = rkey;
	log_line(LOG_LVL_DEBUG, "ti: memory %p: %u bytes at %p, key %#x", (void *)*ph, len, addr,
		desc->rkey);
	return TI_SUCCESS;
}

ti_status_t op_reg_virt_mem(ti_handle_t h_ti, ti_pd_handle_t h_pd, void *p_vaddr,
	uint32_t byte_count, ti_access_t access_rights, ti_rdma_desc_t *p_rdma_desc,
	ti_mem_handle_t *ph_vmem)
{
	int access = mem_access(access_rights);
	struct service *ti;
	struct pd *pd;
	ti_status_t st = TI_INVALID_HANDLE;

	if (ph_vmem)
		*ph_vmem = NULL;
	ti = service_get(h_ti);
	if (!ti)
		return TI_INVALID_HANDLE;
	pd = pd_get(ti, h_pd);
	if (pd && (!p_vaddr || !byte_count || access < 0 || !p_rdma_desc || !ph_vmem))
		st = TI_INVALID_PARAMETER;
	else if (pd)
		st = reg(ti, pd, p_vaddr, byte_count, access, p_rdma_desc, ph_vmem);
	if (pd)
		object_put(&pd->m.obj);
	service_put(ti);
	return st;
}

ti_status_t op_dereg_mem(ti_mem_handle_t h_mem)
{
	struct mem *mem = object_get(h_mem, HANDLE_MEM);
	bool ours;

	if (!mem)
		return TI_INVALID_HANDLE;
	ours = service_leave(&mem->m);
	if (ours)
		object_put(&mem->m.obj);
	object_put(&mem->m.obj);
	return ours ? TI_SUCCESS : TI_INVALID_HANDLE;
}

ti_status_t ti_mem_lkey(ti_mem_handle_t h_mem, ti_region_key_t *p_lkey)
{
	struct mem *mem;

	if (!p_lkey)
		return TI_INVALID_PARAMETER;
	mem = object_get(h_mem, HANDLE_MEM);
	if (!mem)
		return TI_INVALID_HANDLE;
	*p_lkey = mem->mr->lkey;
	object_put(&mem->m.obj);
	return TI_SUCCESS;
}

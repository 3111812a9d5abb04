// SPDX-License-Identifier: BSD-3-Clause
/*
 * Regions of pages given one by one.  In user space a page's address is the one it is mapped at.
 * Pages that do not lie side by side are mapped so once more, which the kernel does for shared
 * mappings alone.
 */
#include "ti/mem/mem_phys.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ti/core/status.h"
#include "ti/mem/mem.h"

struct pages {
	const uint64_t *addr;
	uint32_t n;
	size_t size;
};

static bool are_aligned(const struct pages *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (!p->addr[i] || p->addr[i] % p->size)
			return false;
	return true;
}

static bool are_adjacent(const struct pages *p)
{
	for (uint32_t i = 1; i < p->n; i++)
		if (p->addr[i] != p->addr[i - 1] + p->size)
			return false;
	return true;
}

/* The pages side by side, NULL with errno: the kernel refuses. */
static void *put_together(const struct pages *p)
{
	size_t len = p->n * p->size;
	char *view = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (view == MAP_FAILED)
		return NULL;
	for (uint32_t i = 0; i < p->n; i++) {
		/* of length 0: one mapping more of the same page */
		void *at = mremap((void *)(uintptr_t)p->addr[i], 0, p->size,
			MREMAP_MAYMOVE | MREMAP_FIXED, view + i * p->size);

		if (at == MAP_FAILED) {
			int saved = errno;

			munmap(view, len);
			errno = saved;
			return NULL;
		}
	}
	return view;
}

static ti_status_t reg(struct service *ti, struct pd *pd, const struct pages *p, int access,
	ti_rdma_desc_t *desc, ti_mem_handle_t *ph)
{
	uint64_t wanted = desc->vaddr ? desc->vaddr : p->addr[0], offset = wanted % p->size;
	struct mem what = {.view_len = p->n * p->size};
	void *at = (void *)(uintptr_t)p->addr[0];
	ti_region_key_t rkey;
	ti_status_t st;

	if (!are_adjacent(p)) {
		at = what.view = put_together(p);
		if (!at)
			return errno == EFAULT ? TI_INVALID_ADDRESS : TI_UNSUPPORTED;
		if (!desc->vaddr)
			wanted = (uintptr_t)at;
	}
	what.mr = ibv_reg_mr_iova(pd->ibpd, at, what.view_len, wanted - offset, access);
	rkey = what.mr ? what.mr->rkey : 0;
	st = what.mr ? mem_add(ti, pd, &what, ph) : status_of_errno(errno);
	if (!st) {
		desc->vaddr = wanted;
		desc->rkey = rkey;
		return TI_SUCCESS;
	}
	if (what.mr)
		(void)ibv_dereg_mr(what.mr);
	if (what.view)
		munmap(what.view, what.view_len);
	return st;
}

ti_status_t op_reg_phys_mem(ti_handle_t h_ti, ti_pd_handle_t h_pd, uint64_t *p_phys_page_addr_array,
	uint32_t num_pages, ti_access_t access_rights, ti_rdma_desc_t *p_rdma_desc,
	ti_mem_handle_t *ph_pmem)
{
	struct pages pages = {p_phys_page_addr_array, num_pages, sysconf(_SC_PAGESIZE)};
	int access = mem_access(access_rights);
	struct service *ti;
	struct pd *pd;
	ti_status_t st = TI_INVALID_HANDLE;

	if (ph_pmem)
		*ph_pmem = NULL;
	ti = service_get(h_ti);
	if (!ti)
		return TI_INVALID_HANDLE;
	pd = pd_get(ti, h_pd);
	if (pd && (!pages.addr || !num_pages || access < 0 || !p_rdma_desc || !ph_pmem))
		st = TI_INVALID_PARAMETER;
	else if (pd && !are_aligned(&pages))
		st = TI_INVALID_ADDRESS;
	else if (pd)
		st = reg(ti, pd, &pages, access, p_rdma_desc, ph_pmem);
	if (pd)
		object_put(&pd->m.obj);
	service_put(ti);
	return st;
}

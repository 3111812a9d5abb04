// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/ti_areas.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"

enum { PAGE = 4096, COUNT = 32 };

struct tx_area tx_area(const struct tx_rdma *x, ti_access_t rights)
{
	struct tx_area m = {.at = aligned_alloc(PAGE, TX_AREA)};

	memset(m.at, 0, TX_AREA);
	TX_IS(tx->reg_virt_mem(x->w.ti, x->w.pd, m.at, TX_AREA, rights, &m.desc, &m.mem),
		TI_SUCCESS);
	CHECK_EQ(m.desc.vaddr, (uintptr_t)m.at);
	return m;
}

void tx_rdma_begin(struct tx_rdma *x, const ti_conn_attr_t *attr)
{
	tx_begin(&x->w);
	x->acq = tx_cq(&x->w, 1024);
	x->pcq = tx_cq(&x->w, 1024);
	tx_defaults(&x->a, &x->w, x->acq);
	tx_defaults(&x->p, &x->w, x->pcq);
	if (attr)
		x->a.attr = x->p.attr = *attr;
	x->p.receives = TX_RECEIVES;
	tx_connect(&x->a, &x->p);
	tx_rdma_areas(x);
}

void tx_rdma_areas(struct tx_rdma *x)
{
	uint32_t none[2] = {0};

	TX_IS(tx->res_pool_create(x->w.ti, TI_RES_POOL_RDMA, COUNT, 2, none, 0, &x->remotes),
		TI_SUCCESS);
	TX_IS(tx->res_pool_create(x->w.ti, TI_RES_POOL_MSG, COUNT, 2, none, 0, &x->users),
		TI_SUCCESS);
	x->local = tx_area(x, TI_MEM_READ_WRITE);
	x->remote = tx_area(x, TI_MEM_READ_WRITE);
}

void tx_rdma_end(struct tx_rdma *x)
{
	tx_end(&x->w);
	free(x->local.at);
	free(x->remote.at);
}

ti_data_element_t *tx_local(const struct tx_rdma *x, uint32_t offset, uint32_t len)
{
	ti_data_element_t *e = tx_get(x->users, 1);

	e->num_io_bufs = 1;
	e->local_data_desc[0] =
		(ti_local_data_desc_t){x->local.at + offset, x->local.desc.rkey, len};
	e->msg_opt = TI_OPT_SIGNALED;
	return e;
}

ti_data_element_t *tx_towards_desc(
	const struct tx_rdma *x, uint32_t offset, uint32_t len, ti_rdma_desc_t there)
{
	ti_data_element_t *e = tx_local(x, offset, len);

	TX_IS(ti_rdma_set_remote(e, &there), TI_SUCCESS);
	return e;
}

ti_data_element_t *tx_towards(
	const struct tx_rdma *x, uint32_t offset, uint32_t len, uint32_t there)
{
	ti_rdma_desc_t d = x->remote.desc;

	d.vaddr += there;
	return tx_towards_desc(x, offset, len, d);
}

void tx_fill(char *at, uint32_t len, unsigned seed)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = (i * 7 + seed) & 0xff;
}

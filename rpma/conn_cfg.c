// SPDX-License-Identifier: BSD-3-Clause
/* Configurations of connections. */
#include "rpma/conn_cfg.h"

#include <stdlib.h>

enum { DEFAULT_Q_SIZE = 10 };

const struct rpma_conn_cfg conn_cfg_default = {
	.timeout_ms = RPMA_DEFAULT_TIMEOUT_MS,
	.cq_size = DEFAULT_Q_SIZE,
	.sq_size = DEFAULT_Q_SIZE,
	.rq_size = DEFAULT_Q_SIZE,
};

static uint32_t get(const atomic_uint *size)
{
	return atomic_load_explicit(size, memory_order_relaxed);
}

static void set(atomic_uint *size, uint32_t n)
{
	atomic_store_explicit(size, n, memory_order_relaxed);
}

int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr)
{
	struct rpma_conn_cfg *cfg;

	if (!cfg_ptr)
		return RPMA_E_INVAL;
	cfg = calloc(1, sizeof *cfg);
	if (!cfg)
		return RPMA_E_NOMEM;
	atomic_init(&cfg->timeout_ms, RPMA_DEFAULT_TIMEOUT_MS);
	atomic_init(&cfg->cq_size, DEFAULT_Q_SIZE);
	atomic_init(&cfg->sq_size, DEFAULT_Q_SIZE);
	atomic_init(&cfg->rq_size, DEFAULT_Q_SIZE);
	*cfg_ptr = cfg;
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_new);

int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr)
{
	if (!cfg_ptr)
		return RPMA_E_INVAL;
	free(*cfg_ptr);
	*cfg_ptr = NULL;
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_delete);

int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms)
{
	if (!cfg || timeout_ms < 0)
		return RPMA_E_INVAL;
	atomic_store_explicit(&cfg->timeout_ms, timeout_ms, memory_order_relaxed);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_set_timeout);

int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms)
{
	if (!cfg || !timeout_ms)
		return RPMA_E_INVAL;
	*timeout_ms = atomic_load_explicit(&cfg->timeout_ms, memory_order_relaxed);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_get_timeout);

int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size)
{
	if (!cfg)
		return RPMA_E_INVAL;
	set(&cfg->cq_size, cq_size);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_set_cq_size);

int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size)
{
	if (!cfg || !cq_size)
		return RPMA_E_INVAL;
	*cq_size = get(&cfg->cq_size);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_get_cq_size);

int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size)
{
	if (!cfg)
		return RPMA_E_INVAL;
	set(&cfg->rcq_size, rcq_size);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_set_rcq_size);

int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size)
{
	if (!cfg || !rcq_size)
		return RPMA_E_INVAL;
	*rcq_size = get(&cfg->rcq_size);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_get_rcq_size);

int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size)
{
	if (!cfg)
		return RPMA_E_INVAL;
	set(&cfg->sq_size, sq_size);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_set_sq_size);

int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size)
{
	if (!cfg || !sq_size)
		return RPMA_E_INVAL;
	*sq_size = get(&cfg->sq_size);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_get_sq_size);

int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size)
{
	if (!cfg)
		return RPMA_E_INVAL;
	set(&cfg->rq_size, rq_size);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_set_rq_size);

int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size)
{
	if (!cfg || !rq_size)
		return RPMA_E_INVAL;
	*rq_size = get(&cfg->rq_size);
	return 0;
}
RPMA_SINCE_0_10(rpma_conn_cfg_get_rq_size);

int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared)
{
	if (!cfg)
		return RPMA_E_INVAL;
	atomic_store_explicit(&cfg->shared_channel, shared, memory_order_relaxed);
	return 0;
}

int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared)
{
	if (!cfg || !shared)
		return RPMA_E_INVAL;
	*shared = atomic_load_explicit(&cfg->shared_channel, memory_order_relaxed);
	return 0;
}

int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq)
{
	if (!cfg || !srq)
		return RPMA_E_INVAL;
	atomic_store_explicit(&cfg->srq, srq, memory_order_release);
	return 0;
}

int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr)
{
	if (!cfg || !srq_ptr)
		return RPMA_E_INVAL;
	*srq_ptr = atomic_load_explicit(&cfg->srq, memory_order_acquire);
	return 0;
}

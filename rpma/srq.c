// SPDX-License-Identifier: BSD-3-Clause
/* Shared receive queues and their configurations. */
#include "rpma/srq.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "rpma/log.h"
#include "rpma/mr.h"

enum { DEFAULT_SIZE = 20 };

struct rpma_srq_cfg {
	atomic_uint rq_size, rcq_size;
};

/* ---- configurations ---- */

int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr)
{
	struct rpma_srq_cfg *cfg;

	if (!cfg_ptr)
		return RPMA_E_INVAL;
	cfg = malloc(sizeof *cfg);
	if (!cfg)
		return RPMA_E_NOMEM;
	atomic_init(&cfg->rq_size, DEFAULT_SIZE);
	atomic_init(&cfg->rcq_size, DEFAULT_SIZE);
	*cfg_ptr = cfg;
	return 0;
}

int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr)
{
	if (!cfg_ptr)
		return RPMA_E_INVAL;
	free(*cfg_ptr);
	*cfg_ptr = NULL;
	return 0;
}

int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size)
{
	if (!cfg)
		return RPMA_E_INVAL;
	atomic_store_explicit(&cfg->rq_size, rq_size, memory_order_relaxed);
	return 0;
}

int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size)
{
	if (!cfg || !rq_size)
		return RPMA_E_INVAL;
	*rq_size = atomic_load_explicit(&cfg->rq_size, memory_order_relaxed);
	return 0;
}

int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size)
{
	if (!cfg)
		return RPMA_E_INVAL;
	atomic_store_explicit(&cfg->rcq_size, rcq_size, memory_order_relaxed);
	return 0;
}

int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size)
{
	if (!cfg || !rcq_size)
		return RPMA_E_INVAL;
	*rcq_size = atomic_load_explicit(&cfg->rcq_size, memory_order_relaxed);
	return 0;
}

/* ---- queues ---- */

static int make(struct rpma_peer *peer, uint32_t rq_size, uint32_t rcq_size, struct rpma_srq *srq)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = rq_size, .max_sge = 1}};
	int ret;

	srq->srq = ibv_create_srq(peer->pd, &attr);
	if (!srq->srq)
		return PROVIDER_FAILED("ibv_create_srq()", errno);
	if (!rcq_size)
		return 0;
	ret = cq_new(peer->pd->context, rcq_size, NULL, &srq->rcq);
	if (ret)
		(void)ibv_destroy_srq(srq->srq);
	return ret;
}

int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr)
{
	uint32_t rq_size = DEFAULT_SIZE, rcq_size = DEFAULT_SIZE;
	struct rpma_srq *srq;
	int ret;

	if (!peer || !srq_ptr)
		return RPMA_E_INVAL;
	if (cfg) {
		(void)rpma_srq_cfg_get_rq_size(cfg, &rq_size);
		(void)rpma_srq_cfg_get_rcq_size(cfg, &rcq_size);
	}
	srq = calloc(1, sizeof *srq);
	if (!srq)
		return RPMA_E_NOMEM;
	ret = make(peer, rq_size, rcq_size, srq);
	if (ret)
		free(srq);
	else
		*srq_ptr = srq;
	return ret;
}

int rpma_srq_delete(struct rpma_srq **srq_ptr)
{
	struct rpma_srq *srq;
	int ret = 0, err;

	if (!srq_ptr)
		return RPMA_E_INVAL;
	srq = *srq_ptr;
	*srq_ptr = NULL;
	if (!srq)
		return 0;
	err = ibv_destroy_srq(srq->srq);
	if (err)
		ret = PROVIDER_FAILED("ibv_destroy_srq()", err);
	if (cq_delete(srq->rcq))
		ret = RPMA_E_PROVIDER;
	free(srq);
	return ret;
}

int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
	const void *op_context)
{
	struct ibv_recv_wr *bad;
	struct recv r;
	int err;

	if (!srq || mr_recv(dst, offset, len, op_context, &r))
		return RPMA_E_INVAL;
	err = ibv_post_srq_recv(srq->srq, &r.wr, &bad);
	return err ? PROVIDER_FAILED("ibv_post_srq_recv()", err) : 0;
}

int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr)
{
	if (!srq || !rcq_ptr)
		return RPMA_E_INVAL;
	*rcq_ptr = srq->rcq;
	return 0;
}

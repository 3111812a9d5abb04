// SPDX-License-Identifier: BSD-3-Clause
/* An id with its queues: what requests and connections are made of. */
#include "rpma/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpma/log.h"
#include "rpma/peer.h"
#include "rpma/srq.h"

static uint32_t get(const atomic_uint *size)
{
	return atomic_load_explicit(size, memory_order_relaxed);
}

static int make_queues(struct link *link, const struct rpma_conn_cfg *cfg, bool own_rcq)
{
	struct ibv_context *ctx = link->id->verbs;
	uint32_t rcq_size = get(&cfg->rcq_size);
	int ret = 0;

	if (atomic_load_explicit(&cfg->shared_channel, memory_order_relaxed))
		ret = channel_new(ctx, &link->channel);
	if (!ret)
		ret = cq_new(ctx, get(&cfg->cq_size), link->channel, &link->cq);
	if (!ret && own_rcq && rcq_size)
		ret = cq_new(ctx, rcq_size, link->channel, &link->rcq);
	return ret;
}

static int destroy_queues(struct link *link)
{
	int ret = 0;

	if (cq_delete(link->rcq))
		ret = RPMA_E_PROVIDER;
	if (cq_delete(link->cq))
		ret = RPMA_E_PROVIDER;
	if (channel_delete(link->channel))
		ret = RPMA_E_PROVIDER;
	return ret;
}

int link_make(struct rpma_peer *peer, struct rdma_cm_id *id, const struct rpma_conn_cfg *cfg,
	struct link *link)
{
	struct rpma_srq *srq = atomic_load_explicit(&cfg->srq, memory_order_acquire);
	struct rpma_cq *srq_rcq = srq ? srq->rcq : NULL;
	struct peer_qp qp = {
		.srq = srq ? srq->srq : NULL,
		.sq_size = get(&cfg->sq_size),
		.rq_size = get(&cfg->rq_size),
	};
	int ret;

	*link = (struct link){.peer = peer, .id = id};
	if (srq_rcq && atomic_load_explicit(&cfg->shared_channel, memory_order_relaxed)) {
		LOG_ERROR("the completion queue of an SRQ cannot be on a connection's channel");
		return RPMA_E_INVAL;
	}
	ret = make_queues(link, cfg, !srq_rcq);
	if (!ret) {
		struct rpma_cq *recv_cq = srq_rcq ? srq_rcq : link->rcq;

		qp.send_cq = link->cq->cq;
		qp.recv_cq = recv_cq ? recv_cq->cq : link->cq->cq;
		ret = peer_make_qp(peer, id, &qp, &link->flush);
	}
	if (ret)
		(void)destroy_queues(link);
	return ret;
}

int link_destroy(struct link *link)
{
	int ret;

	if (link->id->qp)
		rdma_destroy_qp(link->id);
	ret = destroy_queues(link);
	if (rdma_destroy_id(link->id))
		ret = PROVIDER_FAILED("rdma_destroy_id()", errno);
	free(link->pdata.ptr);
	return ret;
}

int link_keep_private_data(struct link *link, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	void *copy;

	if (!conn->private_data || !conn->private_data_len || link->pdata.ptr)
		return 0;
	copy = malloc(conn->private_data_len);
	if (!copy)
		return RPMA_E_NOMEM;
	memcpy(copy, conn->private_data, conn->private_data_len);
	link->pdata.ptr = copy;
	link->pdata.len = conn->private_data_len;
	return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
/* Peers: what a device can do, protection domains, queue pairs. */
#include "rpma/peer.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/weft/verbs_ext.h"
#include "rpma/log.h"

/* What an atomic write carries. */
enum { INLINE_SIZE = 8 };

#define FLUSHES (IB_UVERBS_DEVICE_FLUSH_GLOBAL | IB_UVERBS_DEVICE_FLUSH_PERSISTENT)

/* Of the libibverbs that this process runs with, whichever that is. */
static weft_rkey_access_fn find_rkey_access(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *found = lib ? dlsym(lib, "weft_rkey_access") : NULL;
	weft_rkey_access_fn fn = NULL;

	memcpy(&fn, &found, sizeof found);
	if (lib)
		dlclose(lib);
	return fn;
}

static int query(struct ibv_context *ctx, struct ibv_device_attr_ex *attr)
{
	int err = ibv_query_device_ex(ctx, NULL, attr);

	return err ? PROVIDER_FAILED("ibv_query_device_ex()", err) : 0;
}

static bool has_odp(const struct ibv_device_attr_ex *attr)
{
	const uint32_t needed = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;

	return attr->odp_caps.general_caps & IBV_ODP_SUPPORT &&
	       (attr->odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
}

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable)
{
	struct ibv_device_attr_ex attr = {0};
	int ret;

	if (!ibv_ctx || !is_odp_capable)
		return RPMA_E_INVAL;
	ret = query(ibv_ctx, &attr);
	if (!ret)
		*is_odp_capable = has_odp(&attr);
	return ret;
}
RPMA_SINCE_0_10(rpma_utils_ibv_context_is_odp_capable);

static int alloc_pd(struct ibv_context *ctx, struct ibv_pd **pd)
{
	errno = 0;
	*pd = ibv_alloc_pd(ctx);
	if (*pd)
		return 0;
	if (!errno)
		return RPMA_E_UNKNOWN;
	return errno == ENOMEM ? RPMA_E_NOMEM : PROVIDER_FAILED("ibv_alloc_pd()", errno);
}

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr)
{
	struct ibv_device_attr_ex attr = {0};
	struct rpma_peer *peer;
	int ret;

	if (!ibv_ctx || !peer_ptr)
		return RPMA_E_INVAL;
	ret = query(ibv_ctx, &attr);
	if (ret)
		return ret;
	peer = malloc(sizeof *peer);
	if (!peer)
		return RPMA_E_NOMEM;
	*peer = (struct rpma_peer){
		.odp = has_odp(&attr),
		.atomic_write = attr.device_cap_flags_ex & IB_UVERBS_DEVICE_ATOMIC_WRITE,
		.flush = (attr.device_cap_flags_ex & FLUSHES) == FLUSHES,
		.rkey_access = find_rkey_access(),
		.iwarp = ibv_ctx->device->transport_type == IBV_TRANSPORT_IWARP,
	};
	ret = alloc_pd(ibv_ctx, &peer->pd);
	if (ret)
		free(peer);
	else
		*peer_ptr = peer;
	return ret;
}
RPMA_SINCE_0_10(rpma_peer_new);

int rpma_peer_delete(struct rpma_peer **peer_ptr)
{
	struct rpma_peer *peer;
	int err;

	if (!peer_ptr)
		return RPMA_E_INVAL;
	peer = *peer_ptr;
	*peer_ptr = NULL;
	if (!peer)
		return 0;
	err = ibv_dealloc_pd(peer->pd);
	free(peer);
	return err ? PROVIDER_FAILED("ibv_dealloc_pd()", err) : 0;
}
RPMA_SINCE_0_10(rpma_peer_delete);

static uint64_t send_ops(const struct rpma_peer *peer, bool flush)
{
	return (peer->atomic_write ? IBV_QP_EX_WITH_ATOMIC_WRITE : 0) |
	       (flush ? IBV_QP_EX_WITH_FLUSH : 0);
}

static int make_qp(
	struct rpma_peer *peer, struct rdma_cm_id *id, const struct peer_qp *qp, bool flush)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap =
			{
				.max_send_wr = qp->sq_size,
				.max_recv_wr = qp->rq_size,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = INLINE_SIZE,
			},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = peer->pd,
		.send_ops_flags = send_ops(peer, flush),
	};

	if (attr.send_ops_flags)
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	return rdma_create_qp_ex(id, &attr);
}

int peer_make_qp(
	struct rpma_peer *peer, struct rdma_cm_id *id, const struct peer_qp *qp, bool *flush)
{
	int ret = make_qp(peer, id, qp, peer->flush);

	*flush = peer->flush && !ret;
	/* A kernel may have the operation, and a libibverbs of before it not. */
	if (ret && peer->flush && errno == EOPNOTSUPP)
		ret = make_qp(peer, id, qp, false);
	return ret ? PROVIDER_FAILED("rdma_create_qp_ex()", errno) : 0;
}

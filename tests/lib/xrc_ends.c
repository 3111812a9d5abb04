// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/xrc_ends.h"

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

struct ibv_xrcd *xrc_domain(struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags};

	errno = 0;
	return ibv_open_xrcd(ctx, &attr);
}

struct ibv_srq *xrc_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 16, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq};
	struct ibv_srq *srq = ibv_create_srq_ex(pd->context, &init);

	if (!srq)
		die("ibv_create_srq_ex");
	return srq;
}

static struct ibv_qp *make_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, init);

	if (!qp)
		die("ibv_create_qp_ex of type %d", init->qp_type);
	return qp;
}

struct ibv_qp *xrc_initiator(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
		.send_cq = cq,
		.cap = {.max_send_wr = 32, .max_send_sge = 1}};

	return make_qp(pd->context, &init);
}

struct ibv_qp *xrc_target(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};

	return make_qp(xrcd->context, &init);
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC};

	return ibv_modify_qp(
		qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct ibv_qp *qp, uint32_t to, const union ibv_gid *gid)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to,
		.rq_psn = 7,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = *gid, .sgid_index = VP_GID_INDEX, .hop_limit = 1}}};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &a, mask);
}

static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
		.sq_psn = 7,
		.timeout = 18, /* as vp_defaults() */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;

	if (qp->qp_type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &a, mask);
}

int xrc_ready(struct ibv_qp *qp, uint32_t to, const union ibv_gid *gid)
{
	CHECK_EQ(to_init(qp), 0);
	return to_rtr(qp, to, gid);
}

void xrc_connect(struct ibv_qp *qp, uint32_t to, const union ibv_gid *gid)
{
	CHECK_EQ(xrc_ready(qp, to, gid), 0);
	CHECK_EQ(to_rts(qp), 0);
}

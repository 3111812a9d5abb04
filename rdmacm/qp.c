// SPDX-License-Identifier: BSD-3-Clause
/* The QP of an id: made with what it needs, driven through its states. */
#include "rdmacm/qp.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "include/weft/verbs_ext.h"
#include "rdmacm/device.h"

enum { HOP_LIMIT = 64, DEFAULT_ACK_TIMEOUT = 19 };

/* ---- the completion queues of an id: our own, or those that the program gave its QP ---- */

static void destroy_cq(struct ibv_cq *cq, struct ibv_comp_channel **ch)
{
	ibv_destroy_cq(cq);
	if (*ch)
		ibv_destroy_comp_channel(*ch);
	*ch = NULL;
}

static void leave_send_cq(struct ident *id)
{
	if (id->own_send_cq)
		destroy_cq(id->id.send_cq, &id->id.send_cq_channel);
	id->id.send_cq = NULL;
	id->own_send_cq = false;
}

/* Not while a shared queue's completions come there. */
static void leave_recv_cq(struct ident *id)
{
	if (id->srq_has_cq)
		return;
	if (id->own_recv_cq)
		destroy_cq(id->id.recv_cq, &id->id.recv_cq_channel);
	id->id.recv_cq = NULL;
	id->own_recv_cq = false;
}

/* A CQ whose context is the id, as <rdma/rdma_verbs.h> expects, and its channel. */
static int make_cq(struct ident *id, uint32_t cqe, struct ibv_cq **cq, struct ibv_comp_channel **ch)
{
	*ch = ibv_create_comp_channel(id->id.verbs);
	if (!*ch)
		return -errno;
	*cq = ibv_create_cq(id->id.verbs, cqe ? cqe : 1, id, *ch, 0);
	if (*cq)
		return 0;
	ibv_destroy_comp_channel(*ch);
	*ch = NULL;
	return -errno;
}

/* What the id has not yet: those that attr names, else our own.  attr names all of them then. */
static int make_cqs(struct ident *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *r = &id->id;
	int ret;

	if (!r->send_cq && !attr->send_cq) {
		ret = make_cq(id, attr->cap.max_send_wr, &r->send_cq, &r->send_cq_channel);
		if (ret)
			return ret;
		id->own_send_cq = true;
	} else if (!r->send_cq) {
		r->send_cq = attr->send_cq;
	}
	if (!r->recv_cq && !attr->recv_cq) {
		ret = make_cq(id, attr->cap.max_recv_wr, &r->recv_cq, &r->recv_cq_channel);
		if (ret) {
			leave_send_cq(id);
			return ret;
		}
		id->own_recv_cq = true;
	} else if (!r->recv_cq) {
		r->recv_cq = attr->recv_cq;
	}
	attr->send_cq = r->send_cq;
	attr->recv_cq = r->recv_cq;
	return 0;
}

/* An id has one CQ for each direction, also that of its shared queue. */
static bool has_other_cq(const struct rdma_cm_id *r, const struct ibv_qp_init_attr_ex *attr)
{
	return (r->send_cq && attr->send_cq && attr->send_cq != r->send_cq) ||
	       (r->recv_cq && attr->recv_cq && attr->recv_cq != r->recv_cq);
}

/* ---- creation ---- */

static int to_init(struct ident *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask = 0, ret;

	ret = qp_attributes(id, &attr, &mask);
	if (!ret)
		ret = -ibv_modify_qp(qp, &attr, mask);
	if (ret || id->id.qp_type != IBV_QPT_UD)
		return ret;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
	ret = -ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return ret ? ret : -ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int create_qp(struct ident *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int ret;

	if (!id->id.verbs)
		return log_refused(-EINVAL, "rdma_create_qp refused: the id has no device yet; "
					    "rdma_bind_addr or rdma_resolve_addr come first");
	if (id->id.qp)
		return log_refused(-EINVAL, "rdma_create_qp refused: the id has a QP");
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->id.pd;
	} else if (attr->pd->context != id->id.verbs) {
		return log_refused(-EINVAL, "rdma_create_qp refused: the PD is of another context "
					    "than the id, whose is id->verbs");
	}
	if (has_other_cq(&id->id, attr))
		return log_refused(-EINVAL, "rdma_create_qp refused: the id has another CQ, "
					    "id->send_cq or id->recv_cq");
	if (id->id.qp_type == IBV_QPT_XRC_RECV && !(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)) {
		ret = device_xrcd(&attr->xrcd);
		if (ret)
			return ret;
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	}
	ret = make_cqs(id, attr);
	if (ret)
		return ret;
	if (!attr->srq && attr->qp_type != IBV_QPT_XRC_RECV) /* it takes those of its domain */
		attr->srq = id->id.srq;
	qp = ibv_create_qp_ex(id->id.verbs, attr);
	ret = qp ? to_init(id, qp) : -errno;
	if (ret) {
		if (qp)
			ibv_destroy_qp(qp);
		leave_send_cq(id);
		leave_recv_cq(id);
		return ret;
	}
	id->id.pd = attr->pd;
	id->id.qp = qp;
	return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	return result(create_qp(to_ident(id), attr));
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr = {0};
	int ret;

	memcpy(&attr, init, sizeof *init);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd ? pd : id->pd;
	ret = create_qp(to_ident(id), &attr);
	memcpy(init, &attr, sizeof *init);
	return result(ret);
}

void rdma_destroy_qp(struct rdma_cm_id *rdma_id)
{
	struct ident *id = to_ident(rdma_id);

	lock_take(&id->qp_lock);
	if (rdma_id->qp)
		ibv_destroy_qp(rdma_id->qp);
	rdma_id->qp = NULL;
	lock_drop(&id->qp_lock);
	leave_send_cq(id);
	leave_recv_cq(id);
}

/* ---- states ---- */

static int init_attributes(const struct ident *id, struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->qp_state = IBV_QPS_INIT;
	attr->pkey_index = 0;
	attr->port_num = 1;
	if (id->id.qp_type == IBV_QPT_UD) {
		attr->qkey = RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
		return 0;
	}
	attr->qp_access_flags =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask |= IBV_QP_ACCESS_FLAGS;
	return 0;
}

/* Both ends must have the same: a full packet says where it stands in its message. */
static uint8_t path_mtu(const struct ident *id)
{
	const struct device *dev;

	if (id->peer.mtu) /* of a REQ */
		return id->peer.mtu;
	if (id->path.mtu)
		return id->path.mtu;
	return device_get(&dev) ? IBV_MTU_1024 : device_mtu(dev);
}

/* An answer goes the way of its request. */
static bool is_passive(const struct ident *id)
{
	return id->handle & CM_HANDLE_PASSIVE;
}

static int rtr_attributes(const struct ident *id, struct ibv_qp_attr *attr, int *mask)
{
	int index = device_gid_index(id->src.gid);

	if (index < 0)
		return index;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS;
	attr->qp_state = IBV_QPS_RTR;
	attr->path_mtu = path_mtu(id);
	attr->dest_qp_num = id->peer.qpn;
	attr->rq_psn = id->peer.rq_psn;
	attr->max_dest_rd_atomic = id->responder_resources;
	attr->min_rnr_timer = 0;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
					 IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	attr->ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	attr->ah_attr.grh.sgid_index = index;
	attr->ah_attr.grh.hop_limit = HOP_LIMIT;
	attr->ah_attr.grh.traffic_class = is_passive(id) && !id->tos ? id->peer.tclass : id->tos;
	attr->ah_attr.grh.flow_label =
		is_passive(id) ? id->peer.flow_label : be32toh(id->path.flow_label);
	memcpy(attr->ah_attr.grh.dgid.raw, id->dst.gid, 16);
	return 0;
}

static int rts_attributes(const struct ident *id, struct ibv_qp_attr *attr, int *mask)
{
	uint8_t told = id->peer.ack_timeout;

	*mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	attr->qp_state = IBV_QPS_RTS;
	attr->timeout = id->ack_timeout ? id->ack_timeout : (told ? told : DEFAULT_ACK_TIMEOUT);
	attr->retry_cnt = id->retry_count;
	attr->rnr_retry = id->peer.rnr_retry;
	attr->sq_psn = id->peer.sq_psn;
	attr->max_rd_atomic = id->initiator_depth;
	return 0;
}

int qp_attributes(struct ident *id, struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		return init_attributes(id, attr, mask);
	case IBV_QPS_RTR:
		return rtr_attributes(id, attr, mask);
	case IBV_QPS_RTS:
		return rts_attributes(id, attr, mask);
	default:
		return -EINVAL;
	}
}

int rdma_init_qp_attr(struct rdma_cm_id *rdma_id, struct ibv_qp_attr *attr, int *mask)
{
	struct ident *id = to_ident(rdma_id);

	if (!attr || !mask)
		return fail(EINVAL);
	if (!rdma_id->verbs || (attr->qp_state != IBV_QPS_INIT && !id->peer.qpn))
		return fail(EINVAL);
	return result(qp_attributes(id, attr, mask));
}

static int step(struct ident *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0;
	int ret = qp_attributes(id, &attr, &mask);

	return ret ? ret : -ibv_modify_qp(id->id.qp, &attr, mask);
}

int qp_to_connected(struct ident *id)
{
	int ret = step(id, IBV_QPS_RTR);

	return ret ? ret : step(id, IBV_QPS_RTS);
}

void qp_to_error(struct ident *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	lock_take(&id->qp_lock);
	if (id->id.qp && id->id.qp_type != IBV_QPT_UD)
		(void)ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE);
	lock_drop(&id->qp_lock);
}

/* ---- shared receive queues ---- */

/* What an SRQ of the XRC kind needs besides, as far as the program names none. */
static int fill_xrc_srq(struct ident *id, struct ibv_srq_init_attr_ex *attr)
{
	int ret = 0;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd)
		ret = device_xrcd(&attr->xrcd);
	if (ret)
		return ret;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		if (!id->id.recv_cq) {
			ret = make_cq(
				id, attr->attr.max_wr, &id->id.recv_cq, &id->id.recv_cq_channel);
			id->own_recv_cq = !ret;
		}
		attr->cq = id->id.recv_cq;
		id->srq_has_cq = !ret;
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return ret;
}

static int create_srq(struct ident *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;
	int ret = 0;

	if (!id->id.verbs || id->id.srq)
		return -EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->id.pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC)
		ret = fill_xrc_srq(id, attr);
	if (ret)
		return ret;
	srq = ibv_create_srq_ex(id->id.verbs, attr);
	if (!srq) {
		ret = -errno;
		id->srq_has_cq = false;
		if (!id->id.qp)
			leave_recv_cq(id);
		return ret;
	}
	id->id.pd = attr->pd;
	id->id.srq = srq;
	return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	return result(create_srq(to_ident(id), attr));
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct ibv_srq_init_attr_ex attr = {0};
	int ret;

	memcpy(&attr, init, sizeof *init);
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	attr.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	attr.pd = pd;
	ret = create_srq(to_ident(id), &attr);
	memcpy(init, &attr, sizeof *init);
	return result(ret);
}

void rdma_destroy_srq(struct rdma_cm_id *rdma_id)
{
	struct ident *id = to_ident(rdma_id);

	ibv_destroy_srq(rdma_id->srq);
	rdma_id->srq = NULL;
	id->srq_has_cq = false;
	if (!rdma_id->qp)
		leave_recv_cq(id);
}

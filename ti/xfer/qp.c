// SPDX-License-Identifier: BSD-3-Clause
#include "ti/xfer/qp.h"

#include <errno.h>

#include "base/log.h"
#include "ti/core/status.h"
#include "ti/xfer/comp.h"
#include "ti/xfer/drain.h"

enum {
	DEPTH = 128,
	BUFFERS = 4,
	RDMA_DEPTH = 16,
	RETRIES = 7,
	TIMEOUT_MS = 20000,
	INLINE = 64,
	MARKERS = 2, /* receives of conn_break() and of the end */
};

/* ---- what was asked for ---- */

/* wanted, or the default as far as the device has it; false: it has less than is wanted. */
static bool settle(uint32_t *wanted, uint32_t by_default, uint32_t max)
{
	if (!*wanted)
		*wanted = by_default < max ? by_default : max;
	return *wanted <= max;
}

static uint32_t at_most(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static bool settle_sizes(struct conn *c, const struct ibv_port_attr *port)
{
	const struct ibv_device_attr *dev = &c->pd->limits;
	uint32_t wr = dev->max_qp_wr - MARKERS, sge = at_most(dev->max_sge, ELEMENT_BUFS);
	uint32_t reads = at_most(at_most(dev->max_qp_rd_atom, dev->max_qp_init_rd_atom), 254);
	ti_conn_attr_t *a = &c->attr;

	c->max_msg = port->max_msg_sz;
	if (!settle(&a->max_transfer_depth, DEPTH, wr) || !settle(&a->max_recv_depth, DEPTH, wr) ||
		!settle(&a->max_transfer_buffers, BUFFERS, sge) ||
		!settle(&a->max_recv_buffers, BUFFERS, sge))
		return false;
	if (!a->max_rdma_depth)
		a->max_rdma_depth = RDMA_DEPTH;
	a->max_rdma_depth = c->rdma_depth = at_most(a->max_rdma_depth, reads);
	if (!a->max_rdma_size)
		a->max_rdma_size = UINT32_MAX;
	if (!a->max_recv_size)
		a->max_recv_size = c->max_msg;
	return settle(&a->max_transfer_size, c->max_msg, c->max_msg);
}

ti_status_t qp_settle(struct conn *c)
{
	ti_conn_attr_t *a = &c->attr;
	struct ibv_port_attr port;

	if (a->msg_flow_control && !a->reliable)
		return TI_INVALID_PARAMETER;
	if (!a->connect_request_timeout)
		a->connect_request_timeout = TIMEOUT_MS;
	if (!a->connect_request_retries)
		a->connect_request_retries = 1;
	if (!a->max_send_retries || a->max_send_retries > RETRIES)
		a->max_send_retries = RETRIES;
	if (ibv_query_port(c->pd->verbs, 1, &port))
		return TI_ERROR;
	return settle_sizes(c, &port) ? TI_SUCCESS : TI_INVALID_PARAMETER;
}

/* ---- making ---- */

static ti_status_t make_cq(struct conn *c)
{
	struct ibv_comp_channel *channel = comp_channel(c->pd->verbs);
	int n = c->attr.max_transfer_depth + c->attr.max_recv_depth + MARKERS;

	if (!channel)
		return TI_INSUFFICIENT_RESOURCES;
	c->ibcq = ibv_create_cq(c->pd->verbs, n, c, channel, 0);
	return c->ibcq ? TI_SUCCESS : TI_INSUFFICIENT_RESOURCES;
}

ti_status_t qp_make(struct conn *c)
{
	const ti_conn_attr_t *a = &c->attr;
	struct ibv_qp_init_attr init = {
		.qp_type = a->reliable ? IBV_QPT_RC : IBV_QPT_UC,
		.cap = {a->max_transfer_depth, a->max_recv_depth + MARKERS, a->max_transfer_buffers,
			a->max_recv_buffers, INLINE},
	};
	ti_status_t st = make_cq(c);

	if (st)
		return st;
	init.send_cq = init.recv_cq = c->ibcq;
	c->qp = ibv_create_qp(c->pd->ibpd, &init);
	if (!c->qp) {
		init.cap.max_inline_data = 0;
		c->qp = ibv_create_qp(c->pd->ibpd, &init);
	}
	if (!c->qp)
		return status_of_errno(errno) == TI_INSUFFICIENT_MEMORY ? TI_INSUFFICIENT_MEMORY
									: TI_INSUFFICIENT_RESOURCES;
	c->max_inline = init.cap.max_inline_data < INLINE ? init.cap.max_inline_data : INLINE;
	return TI_SUCCESS;
}

/* ---- transitions ---- */

/* What a UC queue pair does not have. */
static const int RC_ONLY = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT |
			   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

/* How often to try is what this side was asked for. */
static void adjust(const struct conn *c, struct ibv_qp_attr *attr, int *mask)
{
	if (attr->qp_state == IBV_QPS_RTS) {
		attr->retry_cnt = c->attr.max_send_retries;
		attr->rnr_retry = c->attr.msg_flow_control ? RETRIES : 0;
	}
	if (!c->attr.reliable) {
		*mask &= ~RC_ONLY;
		attr->qp_access_flags &= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	}
}

static ti_status_t step(struct conn *c, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0, err;

	if (rdma_init_qp_attr(c->id, &attr, &mask))
		return TI_ERROR;
	adjust(c, &attr, &mask);
	err = ibv_modify_qp(c->qp, &attr, mask);
	if (err)
		log_line(LOG_LVL_ERROR, "ti: the queue pair does not go to state %d: errno %d",
			state, err);
	return err ? TI_ERROR : TI_SUCCESS;
}

ti_status_t qp_to_init(struct conn *c)
{
	return step(c, IBV_QPS_INIT);
}

ti_status_t qp_to_ready(struct conn *c)
{
	ti_status_t st = step(c, IBV_QPS_RTR);

	return st ? st : step(c, IBV_QPS_RTS);
}

/* The completion thread may be about to look at it for an event: nobody polls it from now on. */
static struct ibv_cq *take_cq(struct conn *c)
{
	struct ibv_cq *ibcq;

	if (c->bound)
		drain_lock(c);
	ibcq = c->ibcq;
	c->ibcq = NULL;
	if (c->bound)
		drain_unlock(c);
	return ibcq;
}

void qp_end(struct conn *c)
{
	struct ibv_cq *ibcq = take_cq(c);

	if (c->qp)
		(void)ibv_destroy_qp(c->qp);
	c->qp = NULL;
	if (ibcq)
		(void)ibv_destroy_cq(ibcq);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/raw_end.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"

enum { DEPTH = 64, READS = 4, RETRIES = 7 };

/* Receive i is at this place behind buf. */
static uint8_t *place_of(const struct raw_end *r, uint64_t i)
{
	return r->buf + RAW_BUF + i * RAW_RECV;
}

static void post_recv(struct raw_end *r, uint64_t i)
{
	struct ibv_sge sge = {(uintptr_t)place_of(r, i), RAW_RECV, r->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(r->id->qp, &wr, &bad))
		die("ibv_post_recv");
}

void raw_begin(struct raw_end *r, uint16_t port)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {DEPTH, RAW_RECVS, 1, 1, 0},
	};
	size_t size = RAW_BUF + RAW_RECVS * RAW_RECV;

	*r = (struct raw_end){.ch = cm_channel()};
	r->id = cm_resolved(r->ch, cm_addr4(port), false);
	r->buf = calloc(1, size);
	if (!r->buf || rdma_create_qp(r->id, NULL, &init))
		die("rdma_create_qp");
	r->mr = ibv_reg_mr(r->id->pd, r->buf, size, access);
	if (!r->mr)
		die("ibv_reg_mr");
	for (uint64_t i = 0; i < RAW_RECVS; i++)
		post_recv(r, i);
}

void raw_dial(struct raw_end *r, const void *priv, uint8_t len)
{
	struct rdma_conn_param param = {
		.private_data = priv,
		.private_data_len = len,
		.responder_resources = READS,
		.initiator_depth = READS,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};

	if (rdma_connect(r->id, &param))
		die("rdma_connect");
}

int raw_answer(struct raw_end *r, int ms)
{
	struct rdma_cm_event *e;
	int ret;

	if (!cm_readable(r->ch, ms))
		return 0;
	if (rdma_get_cm_event(r->ch, &e))
		die("rdma_get_cm_event");
	ret = e->event == RDMA_CM_EVENT_ESTABLISHED ? 1 : -1;
	if (ret > 0 && e->param.conn.private_data_len) {
		r->priv_len = e->param.conn.private_data_len;
		memcpy(r->priv, e->param.conn.private_data, r->priv_len);
	}
	rdma_ack_cm_event(e);
	return ret;
}

bool raw_post(struct raw_end *r, struct ibv_send_wr *wr, size_t off, uint32_t n)
{
	struct ibv_sge sge = {(uintptr_t)r->buf + off, n, r->mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(r->id->qp, wr, &bad))
		return false;
	r->under_way++;
	return true;
}

enum ibv_wc_status raw_status(struct raw_end *r)
{
	double until = now_ms() + CM_WAIT_MS;
	struct ibv_wc wc;

	while (r->under_way) {
		if (ibv_poll_cq(r->id->send_cq, 1, &wc) > 0) {
			r->under_way--;
			return wc.status;
		}
		if (raw_hung_up(r))
			break;
		if (now_ms() > until)
			die("a request does not complete");
		sched_yield();
	}
	return IBV_WC_GENERAL_ERR;
}

enum ibv_wc_status raw_do(struct raw_end *r, struct ibv_send_wr *wr, size_t off, uint32_t n)
{
	return raw_post(r, wr, off, n) ? raw_status(r) : IBV_WC_GENERAL_ERR;
}

const uint8_t *raw_heard(struct raw_end *r, uint32_t *n)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(r->id->recv_cq, 1, &wc) < 1 || wc.status)
		return NULL;
	*n = wc.byte_len;
	post_recv(r, wc.wr_id);
	return place_of(r, wc.wr_id);
}

bool raw_hung_up(struct raw_end *r)
{
	return cm_readable(r->ch, 0);
}

void raw_end(struct raw_end *r)
{
	struct rdma_cm_event *e;

	rdma_disconnect(r->id);
	while (cm_readable(r->ch, 0) && !rdma_get_cm_event(r->ch, &e))
		rdma_ack_cm_event(e);
	rdma_destroy_qp(r->id);
	ibv_dereg_mr(r->mr);
	rdma_destroy_id(r->id);
	rdma_destroy_event_channel(r->ch);
	free(r->buf);
}

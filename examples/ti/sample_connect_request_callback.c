// SPDX-License-Identifier: BSD-3-Clause
/* Answers a connection request: accepts on the side that connects, tells who listens. */
#include "sample.h"

void sample_connect_request_callback(IN ti_conn_request_t *pConnReq)
{
	struct sock *sk = (struct sock *)pConnReq->context;
	struct ap_opt *p_conn = (struct ap_opt *)&sk->tp_pinfo.af_ap;
	ap_private_t *p_private;
	uint32 cq_entries, msg_count, MsgBufferSize;
	ti_comp_info_t CompInfo;
	ti_pool_response_t MsgPoolResp;
	ti_status_t Status;

	/* refused, timed out or canceled */
	if (pConnReq->status != TI_SUCCESS) {
		RequestCanceled(p_conn, pConnReq->status);
		return;
	}
	lock_sock(sk);
	/* one connection at a time */
	if (p_conn->h_listen_conn && p_conn->state != SDP_PENDING) {
		release_sock(sk);
		p_conn->ti_ops->reject(pConnReq);
		return;
	}
	p_private = pConnReq->private_data;
	/* both sides take the smaller size */
	if (p_conn->rmsg_size != p_private->desired_rmsg_size) {
		p_private->desired_rmsg_size = min(p_conn->rmsg_size, p_private->desired_rmsg_size);
		p_conn->rmsg_size = p_conn->smsg_size = p_private->desired_rmsg_size;
	}

	/* of listen(): sample_accept() goes on with what is kept */
	if (p_conn->state == SDP_PENDING && p_conn->h_listen_conn) {
		p_conn->conn_req = *pConnReq;
		p_conn->private_data = *p_private;
		p_conn->conn_req.private_data = &p_conn->private_data;
		p_conn->conn_req.private_data_len = sizeof(ap_private_t);
		p_conn->state = SDP_CONNECTING;
		SignalConnectRequest(p_conn);
		release_sock(sk);
		return;
	}

	cq_entries = p_conn->conn_attr.max_recv_depth + p_conn->conn_attr.max_transfer_depth;
	Status = p_conn->ti_ops->create_cq(
		p_conn->h_ti, p_conn->conn_info.pdh, cq_entries, &p_conn->h_cq);
	if (Status != FSUCCESS) {
		p_conn->ti_ops->reject(pConnReq);
		release_sock(sk);
		RequestCanceled(p_conn, TI_INSUFFICIENT_MEMORY);
		return;
	}

	msg_count = p_conn->rmsg_depth + p_conn->smsg_depth;
	MsgBufferSize = p_conn->rmsg_size;
	Status = p_conn->ti_ops->res_pool_create(p_conn->h_ti, TI_RES_POOL_MSG, msg_count, 1,
		&MsgBufferSize, sizeof(send_context_t), &p_conn->h_msg_pool);
	if (Status != FSUCCESS) {
		p_conn->ti_ops->destroy_cq(p_conn->h_cq);
		p_conn->ti_ops->reject(pConnReq);
		release_sock(sk);
		RequestCanceled(p_conn, TI_INSUFFICIENT_MEMORY);
		return;
	}
	CompInfo.h_send_cq = p_conn->h_cq;
	CompInfo.h_recv_cq = p_conn->h_cq;
	CompInfo.pfn_send_cb = sample_msg_send_complete;
	CompInfo.pfn_recv_cb = sample_msg_recv_complete;
	CompInfo.pfn_err_cb = ConnErrCallback;
	CompInfo.pfn_rdma_cb = sample_msg_send_complete;
	CompInfo.p_err_context = p_conn;
	Status = p_conn->ti_ops->res_pool_get(
		p_conn->h_msg_pool, msg_count / 2, FALSE, NULL, NULL, NULL, &MsgPoolResp);
	if (Status != FSUCCESS) {
		p_conn->ti_ops->res_pool_destroy(p_conn->h_msg_pool);
		p_conn->ti_ops->destroy_cq(p_conn->h_cq);
		p_conn->ti_ops->reject(pConnReq);
		release_sock(sk);
		RequestCanceled(p_conn, Status);
		return;
	}
	InitializeMsgs(p_conn, &MsgPoolResp);
	Status = p_conn->ti_ops->accept(
		pConnReq, MaxRdmaSize, &CompInfo, MsgPoolResp.p_element_list);
	if (Status != FSUCCESS) {
		p_conn->ti_ops->res_pool_destroy(p_conn->h_msg_pool);
		p_conn->ti_ops->destroy_cq(p_conn->h_cq);
		p_conn->ti_ops->reject(pConnReq);
		release_sock(sk);
		RequestCanceled(p_conn, Status);
		return;
	}

	p_conn->state = SDP_CONNECTED;
	sk->state = TCP_CONNECTED;
	release_sock(sk);
	SignalConnectDone(p_conn);
}

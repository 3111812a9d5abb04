// SPDX-License-Identifier: BSD-3-Clause
/* Takes the connection that came to a listening socket: a new socket, or NULL. */
#include "sample.h"

struct sock *sample_accept(IN struct sock *sk, IN int flags, OUT int *err)
{
	struct ap_opt *p_conn = sk->ap_opt;
	struct sock *newsk;
	ti_comp_info_t CompInfo;
	ti_pool_response_t MsgPoolResp;
	ti_status_t Status;
	uint32_t num_cq_entries, msg_count, MsgBufferSize;

	lock_sock(sk);
	if (p_conn->state == SDP_PENDING) {
		release_sock(sk);
		WaitOnSignalConnectRequest(sk);
		lock_sock(sk);
	}
	if (p_conn->state != SDP_CONNECTING) {
		release_sock(sk);
		*err = -EINVAL;
		return NULL;
	}
	if ((newsk = ap_alloc_sock(sk, GFP_KERNEL)) == NULL) {
		release_sock(sk);
		*err = -ENOBUFS;
		return NULL;
	}
	release_sock(sk);
	p_conn = newsk->ap_opt;
	lock_sock(newsk);

	num_cq_entries = p_conn->conn_attr.max_recv_depth + p_conn->conn_attr.max_transfer_depth;
	Status = p_conn->ti_ops->create_cq(
		p_conn->h_ti, p_conn->conn_info.pdh, num_cq_entries, &p_conn->h_cq);
	if (Status != FSUCCESS) {
		p_conn->ti_ops->reject(&p_conn->conn_req);
		release_sock(newsk);
		RequestCanceled(p_conn, TI_INSUFFICIENT_MEMORY);
		*err = -ENOSR;
		return NULL;
	}

	msg_count = p_conn->rmsg_depth + p_conn->smsg_depth;
	MsgBufferSize = p_conn->rmsg_size;
	Status = p_conn->ti_ops->res_pool_create(p_conn->h_ti, TI_RES_POOL_MSG, msg_count, 1,
		&MsgBufferSize, sizeof(send_context_t), &p_conn->h_msg_pool);
	if (Status != FSUCCESS) {
		p_conn->ti_ops->destroy_cq(p_conn->h_cq);
		p_conn->ti_ops->reject(&p_conn->conn_req);
		release_sock(newsk);
		RequestCanceled(p_conn, TI_INSUFFICIENT_MEMORY);
		*err = -ENOSR;
		return NULL;
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
		p_conn->ti_ops->reject(&p_conn->conn_req);
		release_sock(newsk);
		RequestCanceled(p_conn, Status);
		*err = -ENOSR;
		return NULL;
	}
	InitializeMsgs(p_conn, &MsgPoolResp);
	Status = p_conn->ti_ops->accept(
		&p_conn->conn_req, MaxRdmaSize, &CompInfo, MsgPoolResp.p_element_list);
	if (Status != FSUCCESS) {
		p_conn->ti_ops->res_pool_destroy(p_conn->h_msg_pool);
		p_conn->ti_ops->destroy_cq(p_conn->h_cq);
		p_conn->ti_ops->reject(&p_conn->conn_req);
		release_sock(newsk);
		RequestCanceled(p_conn, Status);
		*err = -ENOSR;
		return NULL;
	}

	p_conn->h_conn = p_conn->conn_req.conn_handle;
	p_conn->state = SDP_CONNECTED;
	newsk->state = TCP_CONNECTED;
	release_sock(newsk);
	return newsk;
}

// SPDX-License-Identifier: BSD-3-Clause
/* Lets a socket listen. */
#include "sample.h"

int sample_listen(IN struct sock *sk)
{
	struct ap_opt *p_conn = sk->ap_opt;
	ti_status_t status;

	lock_sock(sk);
	sk->state = TCP_LISTEN;
	if (sk->prot->get_port(sk, sk->num) != 0) {
		sk->state = TCP_CLOSE;
		release_sock(sk);
		return (-EADDRINUSE);
	}
	sk->sport = htons(sk->num);
	sk_dst_reset(sk);
	sk->prot->hash(sk);

	p_conn->conn_info.private_data_len = sizeof(ap_private_t);
	p_conn->conn_info.private_data = &p_conn->private_data;
	p_conn->conn_info.private_data_offset = 0;
	p_conn->conn_info.private_data_offset_len = 0;
	p_conn->conn_info.conn_request_cb = sample_connect_request_callback;
	p_conn->conn_info.context = (void *)sk;

	p_conn->conn_attr.max_transfer_depth = p_conn->smsg_depth + p_conn->rdma_depth;
	p_conn->conn_attr.max_transfer_buffers = 1;
	p_conn->conn_attr.max_recv_depth = p_conn->rmsg_depth;
	p_conn->conn_attr.max_recv_buffers = 1;
	p_conn->conn_attr.reliable = TRUE;
	p_conn->conn_attr.msg_flow_control = TRUE;
	p_conn->conn_attr.auto_path_migration = TRUE;
	p_conn->conn_attr.auto_cq_rearm = TRUE;
	if (p_conn->ti_ops->listen(p_conn->h_ti, &p_conn->conn_attr, &p_conn->conn_info,
		    &p_conn->conn_req, &p_conn->h_listen_conn) != TI_SUCCESS) {
		p_conn->ti_ops->destroy_endpoint(p_conn->conn_info.dst_ep);
		p_conn->conn_info.dst_ep = NULL;
		sk->state = TCP_CLOSE;
		release_sock(sk);
		return -EADDRNOTAVAIL;
	}

	sk->err = 0;
	sk->done = 0;
	p_conn->state = SDP_PENDING;
	release_sock(sk);
	return SUCCESS;
}

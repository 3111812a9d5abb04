// SPDX-License-Identifier: BSD-3-Clause
/* Begins to connect; the request callback goes on. */
#include "sample.h"

int sample_connect(IN struct sock *sk, IN struct sockaddr *uaddr, IN int addr_len)
{
	struct ap_opt *p_conn = sk->ap_opt;
	ti_status_t status;
	struct sockaddr_in *addr = (struct sockaddr_in *)uaddr;
	ti_inet_addr_t ti_addr;

	if (addr_len < sizeof(struct sockaddr_in))
		return (-EINVAL);
	if (addr->sin_family != AF_INET)
		return (-EAFNOSUPPORT);
	lock_sock(sk);
	if (!p_conn->conn_info.src_ep) {
		release_sock(sk);
		return (-EINVAL);
	}

	ti_addr.IP_addr_type = TI_ADDR_IPV4;
	ti_addr.ip4_addr = addr->sin_addr.s_addr;
	if (p_conn->ti_ops->create_endpoint(p_conn->h_ti, &ti_addr, ntohs(addr->sin_port),
		    &p_conn->conn_info.dst_ep) != TI_SUCCESS) {
		release_sock(sk);
		return (-ENETUNREACH);
	}

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
	p_conn->private_data.desired_rmsg_size = p_conn->rmsg_size;
	if (p_conn->ti_ops->connect(p_conn->h_ti, &p_conn->conn_attr, &p_conn->conn_info,
		    &p_conn->conn_req, &p_conn->h_conn) != TI_SUCCESS) {
		p_conn->ti_ops->destroy_endpoint(p_conn->conn_info.dst_ep);
		p_conn->conn_info.dst_ep = NULL;
		release_sock(sk);
		return -EADDRNOTAVAIL;
	}

	sk->dport = addr->sin_port;
	sk->daddr = addr->sin_addr.s_addr;
	sk->err = 0;
	sk->done = 0;
	sk->state = TCP_SYN_SENT;
	p_conn->state = SDP_PENDING;
	release_sock(sk);
	return SUCCESS;
}

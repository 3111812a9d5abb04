// SPDX-License-Identifier: BSD-3-Clause
/* Gives a socket its address: a service, an endpoint and a protection domain. */
#include "sample.h"

int sample_bind(IN struct sock *sk, IN struct sockaddr *uaddr, IN int addr_len)
{
	struct sockaddr_in *addr = (struct sockaddr_in *)uaddr;
	struct ap_opt *p_conn = &sk->tp_pinfo.af_ap;
	ti_inet_addr_t ti_addr;
	unsigned short snum;

	if (addr_len < sizeof(struct sockaddr_in))
		return -EINVAL;
	lock_sock(sk);
	if ((sk->state != TCP_CLOSE) || (sk->num != 0)) {
		release_sock(sk);
		return (-EINVAL);
	}

	if (!p_conn->h_ti) {
		if (p_conn->ti_ops->create_ti(&p_conn->h_ti) != TI_SUCCESS) {
			release_sock(sk);
			return (-EINVAL);
		}
	}

	ti_addr.IP_addr_type = TI_ADDR_IPV4;
	ti_addr.ip4_addr = addr->sin_addr.s_addr;
	sk->rcv_saddr = sk->saddr = addr->sin_addr.s_addr;
	if (p_conn->ti_ops->create_endpoint(p_conn->h_ti, &ti_addr, ntohs(addr->sin_port),
		    &p_conn->conn_info.src_ep) != TI_SUCCESS) {
		release_sock(sk);
		return (-EADDRINUSE);
	}
	if (p_conn->ti_ops->create_pd(
		    p_conn->h_ti, p_conn->conn_info.src_ep, &p_conn->conn_info.pdh) != TI_SUCCESS) {
		p_conn->ti_ops->destroy_endpoint(p_conn->conn_info.src_ep);
		release_sock(sk);
		return (-ENOSR);
	}

	sk->userlocks |= SOCK_BINDADDR_LOCK;
	sk->userlocks |= SOCK_BINDPORT_LOCK;
	sk->sport = addr->sin_port;
	sk->daddr = 0;
	sk->dport = 0;
	sk_dst_reset(sk);
	release_sock(sk);
	return SUCCESS;
}

// SPDX-License-Identifier: BSD-3-Clause
/* Reads what was received; gives a message that is read to the end back to the connection. */
#include "sample.h"

int sample_msg_recv(IN struct sock *sk, IN struct msghdr *msg, IN int size, IN int nonblock,
	IN int flags, OUT int *addr_len)
{
	struct ap_opt *p_conn = sk->ap_opt;
	ti_status_t status;
	ti_data_element_t *p_msg;
	ti_pool_response_t res_pool_resp;
	int mss, rbytes, bytes_copied;

	lock_sock(sk);
	if (p_conn->state != SDP_CONNECTED) {
		release_sock(sk);
		return -EAGAIN;
	}
	mss = p_conn->smsg_size;
	if (size > mss) {
		release_sock(sk);
		return (sample_rdma_read(sk, msg, size, addr_len));
	}
	p_msg = queue_head_locked(&p_conn->recv_q_lock, &p_conn->rmsgs);
	if (!p_msg) {
		WaitOnSignalRecvData(sk);
		p_msg = queue_head_locked(&p_conn->recv_q_lock, &p_conn->rmsgs);
	}
	if (!p_msg) {
		release_sock(sk);
		return -ENOTCONN;
	}

	rbytes = p_msg->recv_byte_count - p_msg->ud_offset;
	bytes_copied = min(rbytes, size);
	if (memcpy_toiovec(msg->msg_iov, (char *)p_msg->local_data_desc->vaddr + p_msg->ud_offset,
		    bytes_copied)) {
		release_sock(sk);
		return -EFAULT;
	}
	if (bytes_copied < rbytes) {
		p_msg->ud_offset += bytes_copied;
	} else {
		remove_queue_head_locked(&p_conn->recv_q_lock, &p_conn->rmsgs);
		p_msg->p_next_msg = NULL;
		p_msg->ud_offset = 0;
		if (p_conn->ti_ops->msg_recv(p_conn->h_conn, p_msg) != TI_SUCCESS) {
			p_conn->ti_ops->res_pool_put(p_conn->h_msg_pool, p_msg);
			release_sock(sk);
			return -EPIPE;
		}
	}
	*addr_len = bytes_copied;
	release_sock(sk);
	return SUCCESS;
}
